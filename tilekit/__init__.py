# SPDX-License-Identifier: Apache-2.0
"""tilekit: a notebook workshop for tile-level GPU kernels."""

__version__ = "0.1.0"
