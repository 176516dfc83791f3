# SPDX-License-Identifier: Apache-2.0
"""Every instruction class in one place, for those who build IR by hand."""

from tilekit.ir.instructions.assume import AssumeInst
from tilekit.ir.instructions.copy_async import (
    CopyAsyncCommitGroupInst,
    CopyAsyncGenericInst,
    CopyAsyncInst,
    CopyAsyncWaitAllInst,
    CopyAsyncWaitGroupInst,
)
from tilekit.ir.instructions.dot import DotInst
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
from tilekit.ir.instructions.print import FormatPrintInst, PrintTensorInst
from tilekit.ir.instructions.reduce import ReduceInst
from tilekit.ir.instructions.register import AllocateRegisterInst, AssignInst
from tilekit.ir.instructions.semaphore import LockSemaphoreInst, ReleaseSemaphoreInst
from tilekit.ir.instructions.shared import (
    AllocateSharedInst,
    FreeSharedInst,
    LoadSharedInst,
    PermuteSharedInst,
    ReshapeSharedInst,
    SliceSharedInst,
    StoreSharedInst,
)
from tilekit.ir.instructions.sync import SyncThreadsInst
from tilekit.ir.instructions.transform import (
    AnnotateLayoutInst,
    ReshapeRegisterInst,
    SliceAssignInst,
    SliceRegisterInst,
    SqueezeInst,
    TransposeInst,
    UnsqueezeInst,
    ViewInst,
)
from tilekit.ir.instructions.workspace import AllocateGlobalInst

__all__ = [
    "AddInst",
    "AllocateGlobalInst",
    "AllocateRegisterInst",
    "AllocateSharedInst",
    "AnnotateLayoutInst",
    "AssignInst",
    "AssumeInst",
    "CastInst",
    "CopyAsyncCommitGroupInst",
    "CopyAsyncGenericInst",
    "CopyAsyncInst",
    "CopyAsyncWaitAllInst",
    "CopyAsyncWaitGroupInst",
    "DivInst",
    "DotInst",
    "ElementwiseBinaryInst",
    "ElementwiseUnaryInst",
    "FormatPrintInst",
    "FreeSharedInst",
    "GlobalViewInst",
    "LoadGlobalGenericInst",
    "LoadGlobalInst",
    "LoadSharedInst",
    "LockSemaphoreInst",
    "MulInst",
    "PermuteSharedInst",
    "PrintTensorInst",
    "ReduceInst",
    "ReleaseSemaphoreInst",
    "ReshapeRegisterInst",
    "ReshapeSharedInst",
    "SliceAssignInst",
    "SliceRegisterInst",
    "SliceSharedInst",
    "SqueezeInst",
    "StoreGlobalGenericInst",
    "StoreGlobalInst",
    "StoreSharedInst",
    "SubInst",
    "SyncThreadsInst",
    "TransposeInst",
    "UnsqueezeInst",
    "ViewInst",
    "WhereInst",
]
