# SPDX-License-Identifier: Apache-2.0
"""tilekit in IPython and Jupyter: the `%%tilus` cell, and how kernels are displayed."""
