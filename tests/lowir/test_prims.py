# SPDX-License-Identifier: Apache-2.0
import pytest

from tests.lowir.kernels import INCLUDE
from tilekit import dtypes, target
from tilekit.diag import CodegenError
from tilekit.dtypes import PointerType, VoidType, float16, float32, int32
from tilekit.lowir import passes, prims, printer, scalar
from tilekit.lowir.build import KernelBuilder
from tilekit.toolchain import host, nvrtc
from tilekit.toolchain.binary import Options


def source_of(rows):
    """A kernel that calls every one of these functions, each with arguments that the compiler cannot know."""
    builder = KernelBuilder(64)
    memory = scalar.var("memory", ~dtypes.uint8)
    for row in rows:
        with builder.instruction(0, str(row)):
            args = [_argument(builder, memory, param) for param in row.params]
            call = prims.call(_spelling(row), *args)
            if isinstance(row.result, DataType):
                builder.buffer_store(scalar.cast(memory, ~row.result), 0, call)
            else:
                builder.evaluate(call)
    return printer.print_module(passes.optimize(builder.finish("every_function", [memory]))).text


DataType = dtypes.DataType


def _spelling(row):
    if not row.template_numbers:
        return row.name
    return f"{row.name}<{', '.join(['1'] * row.template_numbers)}>"


def _argument(builder, memory, param):
    if isinstance(param, PointerType):
        return memory if param == dtypes.void_p else scalar.cast(memory, param)
    return builder.let("x", builder.buffer_load(scalar.cast(memory, PointerType(param)), 0))


@pytest.mark.skipif(host.find_compiler() is None, reason="no C++ compiler here")
def test_every_function_compiles_for_the_cpu(tmp_path):
    (tmp_path / "source.cu").write_text(source_of([row for row in prims.PRIMITIVES if row.on_cpu]))
    host.require_compiler().build_kernel(tmp_path / "source.cu", tmp_path / "lib.so", include=INCLUDE)


@pytest.mark.parametrize("name", ["sm_80", "sm_89", "sm_90a"])
def test_every_function_compiles_for_every_target(name, tmp_path):
    pytest.importorskip("cuda.bindings.nvrtc")
    goal = target.parse(name)
    rows = [row for row in prims.PRIMITIVES if target.parse(row.target).capability <= goal.capability]
    # nothing here asks for optimized code, and the assembler takes most of the time
    options = Options(header_cache=tmp_path, ptxas_optimization=False)
    assert nvrtc.compile(source_of(rows), goal, include=INCLUDE, options=options).cubin


def test_a_row_is_there_for_every_function_of_the_scalar_language():
    from tilekit.lowir.functions import FUNCTIONS

    names = {row.name for row in prims.PRIMITIVES}
    assert all(f"tk::{name}" in names for name in FUNCTIONS if name not in ("c_div", "c_mod"))


def test_a_raw_address_takes_any_pointer():
    p, q = scalar.var("p", ~float16), scalar.var("q", ~dtypes.int8)
    assert prims.load_global(16, p, q).func_var.name == "tk::load_global_16"


def test_a_call_with_other_types_names_those_that_exist():
    with pytest.raises(CodegenError, match=r"there is no tk::ballot of \(int32\)") as caught:
        prims.call("tk::ballot", 1)
    assert "there is tk::ballot(bool)" in str(caught.value)


def test_shared_memory_has_the_type_that_is_asked_for():
    pointer = prims.shared_ptr(float32, 1024)
    assert scalar.dtype_of(pointer) == ~float32
    assert pointer.func_var.name == "tk::shared_ptr<float>"


def test_python_integers_are_int32():
    call = prims.shfl_xor(scalar.var("x", float32), 16)
    assert scalar.dtype_of(call.args[1]) is int32 and scalar.dtype_of(call) is float32


def test_only_functions_that_give_a_value_and_nothing_else_are_pure():
    pure = {row.header for row in prims.PRIMITIVES if row.pure}
    assert pure == {"core.h", "integer.h", "cast.h", "math.h"}
    impure = {row.header for row in prims.PRIMITIVES if not row.pure}
    moving = {"memory.h", "shared.h", "matrix.h", "async.h"}
    assert impure == {*moving, "mma.h", "warp.h", "sync.h", "semaphore.h"}
    assert all(row.pure is False for row in prims.PRIMITIVES if isinstance(row.result, VoidType))


def test_a_tile_is_spelled_with_its_numbers():
    d, a, b = (scalar.var(name, ~dtype) for name, dtype in (("d", float32), ("a", float16), ("b", float16)))
    tile = prims.MmaTile(mi=4, ni=8, ki=2, dm=32, dn=4, am=16, ak=8, bk=4, bn=8)
    call = prims.mma_tile("m16n8k16_f16_f32", tile, d, a, b)
    assert call.func_var.name == "tk::mma_tile_m16n8k16_f16_f32<4, 8, 2, 32, 4, 16, 8, 4, 8, 2, 2>"
    assert not prims.is_pure(call)


@pytest.mark.parametrize("numbers", ["", "<1, 2>"])
def test_a_template_takes_as_many_numbers_as_it_says(numbers):
    assert prims.call("tk::cp_async_wait_group<1>").func_var.name == "tk::cp_async_wait_group<1>"
    with pytest.raises(CodegenError, match=f"there is no tk::cp_async_wait_group{numbers} of"):
        prims.call(f"tk::cp_async_wait_group{numbers}")
