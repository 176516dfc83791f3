# SPDX-License-Identifier: Apache-2.0
"""The live panels: a class holds the state of one and names its bundle; how it behaves is written in `widgets/src`."""
