# SPDX-License-Identifier: Apache-2.0
"""What `tilus.hidet` means to a script: the types that tilus keeps there are tilekit's own."""
