# SPDX-License-Identifier: Apache-2.0
"""Source to binary: NVRTC, nvcc and the host C++ compiler, and what they say, read into messages with lines."""
