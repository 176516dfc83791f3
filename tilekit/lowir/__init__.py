# SPDX-License-Identifier: Apache-2.0
"""Everything about hidet: the scalar language, the builder of Hidet IR, its passes, and the CUDA printer."""
