# SPDX-License-Identifier: Apache-2.0
"""The CPU simulator: runs a `source.cu` in a worker process that emulates CUDA threads, and reports what goes wrong."""
