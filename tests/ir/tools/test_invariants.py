# SPDX-License-Identifier: Apache-2.0
import pytest
from hypothesis import given

from tests.ir import strategies
from tilekit import dtypes
from tilekit.diag.errors import VerificationError
from tilekit.ir.inst import Instruction, operand, static
from tilekit.ir.tensor import RegisterTensor
from tilekit.ir.tools import collect_instructions, invariants


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
