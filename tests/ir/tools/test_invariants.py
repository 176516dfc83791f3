# SPDX-License-Identifier: Apache-2.0
import pytest
from hypothesis import given

from tests.ir import strategies
from tilekit import dtypes
from tilekit.diag.errors import VerificationError
from tilekit.ir.inst import REGISTRY, Instruction, operand, static
from tilekit.ir.instructions.copy_async import CopyAsyncInst
from tilekit.ir.instructions.elementwise import AddInst
from tilekit.ir.instructions.print import PrintTensorInst
from tilekit.ir.instructions.shared import StoreSharedInst
from tilekit.ir.tensor import GlobalLayout, GlobalTensor, RegisterTensor, SharedTensor
from tilekit.ir.tools import collect_instructions, invariants
from tilekit.lowir import scalar


@given(strategies.programs())
def test_an_instruction_is_made_once_more_from_its_parts(prog):
    for inst in collect_instructions(prog.function):
        again = invariants.recreate(inst)
        assert type(again) is type(inst) and (again.inputs, again.output) == (inst.inputs, inst.output)


class Repeat(Instruction):
    """One whose `create` does not take its fields."""

    x: RegisterTensor = operand()
    times: int = static()

    @staticmethod
    def create(x, count, output=None):
        return Repeat(output, x, count)


def test_create_takes_the_fields_by_their_names():
    inst = Repeat.create(RegisterTensor.create(dtypes.int32, [4]), 2)
    with pytest.raises(VerificationError, match=r"create\(\) of Repeat takes 'count', which is no field") as caught:
        invariants.recreate(inst)
    assert caught.value.diagnostic.help == "name its parameters as the fields are named: output, x, times"


TILE, MEMORY = RegisterTensor.create(dtypes.float32, [32]), SharedTensor.create(dtypes.float32, [32])
ADD, STORE = AddInst.create(TILE, TILE), StoreSharedInst.create(MEMORY, TILE)
PRINT = PrintTensorInst.create(TILE, "x")
VIEW = GlobalTensor.create(dtypes.float32, GlobalLayout.row_major([scalar.int32(32)]))
COPY = CopyAsyncInst.create(MEMORY, VIEW, [scalar.int32(0)], [0])


@pytest.mark.parametrize(
    ("inst", "message"),
    [
        (ADD.replace(y=MEMORY), "y of add must be a tile, got a shared float32[32] tensor"),
        (ADD.replace(output=MEMORY), "output of add must be a tile, got a shared float32[32] tensor"),
        (STORE.replace(dst=TILE), "dst of store_shared must be a shared tensor, got a float32[32] tile"),
        (STORE.replace(x=MEMORY), "x of store_shared must be a tile, got a shared float32[32] tensor"),
        (STORE.replace(output=TILE), "store_shared gives no result, and here it has one"),
        (COPY.replace(src=MEMORY), "src of copy_async must be a global tensor, got a shared float32[32] tensor"),
    ],
)
def test_a_tensor_of_another_kind_is_refused(inst, message):
    with pytest.raises(VerificationError) as caught:
        invariants.check_instruction(inst)
    assert caught.value.message == message


@pytest.mark.parametrize("tensor", [TILE, MEMORY, VIEW])
def test_a_tensor_of_any_kind_is_printed(tensor):
    invariants.check_instruction(PRINT.replace(x=tensor))


def test_every_operand_says_which_kind_of_tensor_it_is():
    for cls in REGISTRY.values():
        assert all(wanted for name, wanted in invariants.kinds(cls).items() if name != "output"), cls
