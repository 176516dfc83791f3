# SPDX-License-Identifier: Apache-2.0
"""The tile IR: programs over whole tensors, at the granularity of a thread block."""
