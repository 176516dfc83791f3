# SPDX-License-Identifier: Apache-2.0
"""What `tilus.hidet.ir` means to a script: types and their names."""

from tilekit import dtypes
from tilekit.dtypes import DataType, PointerType, TensorType

__all__ = ["DataType", "PointerType", "TensorType", "dtypes"]
