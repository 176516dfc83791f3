# SPDX-License-Identifier: Apache-2.0
"""A kernel that does not fit in shared memory is told what takes it, where that is made, and what to do."""

import pytest

from tilekit import drivers, target
from tilekit.diag import CodegenError
from tilekit.ir.text import parser


def program(*lines, header=""):
    head = f"@kernel(\n    grid=[i32(1), i32(1), i32(1)],\n{header}    warps=4,\n)\ndef f(n: i32, x: ~f32):\n"
    return parser.parse_program(head + "".join(f"    {line}\n" for line in lines))


def refusal(*lines, to=target.SM90A, header=""):
    with pytest.raises(CodegenError) as caught:
        drivers.generate_source(program(*lines, header=header), to)
    return caught.value.diagnostic


def staged(name, *shape):
    """A ring of buffers, one of which is filled and read in every round."""
    stages, *tile = shape
    part = f"slice_shared({name}, offsets=[n % i32({stages}), i32(0), i32(0)], dims=[1, 2])"
    return [
        f"{name}: Shared[f32{list(shape)}] = shared_tensor()",
        f"{name}_stage: Shared[f32{tile}] = {part}",
        f"{name}_tile: f32{tile} = register_tensor(init=f32(1.0))",
        f"store_shared({name}_stage, {name}_tile)",
        "sync()",
        f"print_tensor({name}_stage, msg='{name}')",
    ]


def test_the_tensors_are_named_with_their_bytes_the_largest_first():
    error = refusal(*staged("a", 4, 32, 64), *staged("b", 4, 128, 128), to=target.SM90A)
    assert error.code == "TK402"
    assert error.message == (
        "f needs 294912 bytes of shared memory, 62464 more than the 232448 that a block has on sm_90a"
    )
    assert error.at.line == 7
    assert [(note, at.line) for note, at in error.notes] == [("b takes 262144 bytes", 7), ("a takes 32768 bytes", 1)]


def test_fewer_stages_are_advised_where_several_tensors_have_as_many():
    error = refusal(*staged("a", 6, 64, 64), *staged("b", 6, 128, 64))
    assert error.help == "fewer stages: with 4 in place of 6, b and a take 98304 bytes less"
    drivers.generate_source(program(*staged("a", 4, 64, 64), *staged("b", 4, 128, 64)), target.SM90A)


def test_smaller_tiles_are_advised_where_fewer_stages_do_not_help():
    advice = "make the tiles smaller, or call self.free_shared on what is not needed any more before others are made"
    tile = ["s: Shared[f32[512, 128]] = shared_tensor()", "t: f32[512, 128] = register_tensor(init=f32(1.0))"]
    assert refusal(*tile, "store_shared(s, t)", "sync()", "print_tensor(s, msg='s')").help == advice
    assert refusal(*staged("a", 1, 512, 128)).help == advice


def test_the_limit_is_that_of_the_target():
    lines = staged("a", 3, 128, 128)
    drivers.generate_source(program(*lines), target.SM90A)
    assert refusal(*lines, to=target.SM80).message == (
        "f needs 196608 bytes of shared memory, 29696 more than the 166912 that a block has on sm_80"
    )


def test_an_instruction_that_needs_the_memory_for_itself_is_named():
    error = refusal(
        "a: f32[16384, 128] @ local(16384, 1).spatial(1, 128) = register_tensor(init=f32(1.0))",
        "b: f32[16384] = reduce(a, dims=[1], op='sum')",
        "store_global_generic(b, ptr=x, axes=[i], offset=i64(i))",
    )
    (note,) = error.notes
    assert note[0] == "reduce, which moves elements between threads, takes 262144 bytes"
    assert error.at.line == note[1].line == 2


def test_clusters_of_blocks_have_no_code_yet():
    assert refusal("sync()", header="    cluster=[2, 1, 1],\n").message == "clusters of blocks have no code"
