# SPDX-License-Identifier: Apache-2.0
"""The emitters, by machine."""
