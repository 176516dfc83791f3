# SPDX-License-Identifier: Apache-2.0
"""Tools that listen to compiles; the compiler knows none of them."""
