# SPDX-License-Identifier: Apache-2.0
"""The kernel language: from the Python of a kernel's methods to tile IR.

`params`, `autotune`, `classes` and `source` need no compiler; the rest is imported when a kernel is first transpiled.
"""
