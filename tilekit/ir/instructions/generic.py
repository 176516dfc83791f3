# SPDX-License-Identifier: Apache-2.0
"""Every instruction class in one place, for those who build IR by hand."""

from tilekit.ir.instructions.elementwise import (
    AddInst,
    CastInst,
    DivInst,
    ElementwiseBinaryInst,
    ElementwiseUnaryInst,
    MulInst,
    SubInst,
    WhereInst,
)
from tilekit.ir.instructions.memory import (
    GlobalViewInst,
    LoadGlobalGenericInst,
    LoadGlobalInst,
    StoreGlobalGenericInst,
    StoreGlobalInst,
)
from tilekit.ir.instructions.reduce import ReduceInst
from tilekit.ir.instructions.register import AllocateRegisterInst, AssignInst
from tilekit.ir.instructions.sync import SyncThreadsInst

__all__ = [
    "AddInst",
    "AllocateRegisterInst",
    "AssignInst",
    "CastInst",
    "DivInst",
    "ElementwiseBinaryInst",
    "ElementwiseUnaryInst",
    "GlobalViewInst",
    "LoadGlobalGenericInst",
    "LoadGlobalInst",
    "MulInst",
    "ReduceInst",
    "StoreGlobalGenericInst",
    "StoreGlobalInst",
    "SubInst",
    "SyncThreadsInst",
    "WhereInst",
]
