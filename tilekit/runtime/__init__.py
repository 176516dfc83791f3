# SPDX-License-Identifier: Apache-2.0
"""Binary to numbers: the manifest of a compiled kernel, the tensors given to it, and its launch on a GPU or the CPU."""
