# SPDX-License-Identifier: Apache-2.0
import numpy as np

from tilekit.ir.evaluator import evaluate
from tilekit.ir.text import parser
from tilekit.transforms import declare_to_let_pass, get_default_passes, run_passes


def many_scalars(count: int) -> str:
    lines = [f"    v{k}: i32 = n + i32({k})\n    sync()" for k in range(count)]
    return f"""
@kernel(grid=[i32(1), i32(1), i32(1)], warps=1)
def f(n: i32, p: ~i32):
{chr(10).join(lines)}
    g: Global[i32[i32(1)]] = global_view(ptr=p)
    x: i32[1] = register_tensor(init=v0 + v{count - 1})
    store_global(g, x, offsets=[i32(0)], dims=[0])
"""


def test_a_block_of_very_many_scalars_can_still_be_walked_and_run():
    prog = run_passes(parser.parse_program(many_scalars(200)), get_default_passes(), check=True)
    memory = np.zeros(1, np.int32)
    evaluate.run(prog, [5, memory])
    assert memory[0] == 5 + (5 + 199)


def test_lets_nest_no_deeper_the_second_time():
    once = declare_to_let_pass()(parser.parse_program(many_scalars(200)))
    assert declare_to_let_pass()(once) is once
