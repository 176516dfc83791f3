# SPDX-License-Identifier: Apache-2.0
"""A person's edit of the generated source: it runs, it is compared, and it poisons nothing."""

import doctest
import gc

import numpy as np
import pytest
import torch

import tilekit as tilus
from tilekit import float32, int32
from tilekit.diag import ArgumentError, KernelError, LanguageError, ToolchainError, VerificationError
from tilekit.jit.kernel import Kernel


class Twice(tilus.Script):
    def __init__(self, salt: int = 0):
        super().__init__()
        self.salt = salt

    def __call__(self, n: int32, x_ptr: ~float32, y_ptr: ~float32):
        self.attrs.blocks = [(n + 255) // 256]
        self.attrs.warps = 4
        at = self.blockIdx.x * 256
        x = self.load_global(self.global_view(x_ptr, dtype=float32, shape=[n]), offsets=[at], shape=[256])
        gy = self.global_view(y_ptr, dtype=float32, shape=[n])
        self.store_global(gy, x * 2.0, offsets=[at])


def called(salt: int, n: int = 500):
    handle = Twice(salt)
    x, y = torch.rand(n) + 0.5, torch.zeros(n)  # none is 0, of which twice is four times
    handle(n, x, y)
    return handle, handle.last, x, y


def test_an_edit_runs_from_the_next_call_on_and_reverts():
    handle, kernel, x, y = called(1)
    kernel.recompile(kernel.source.replace("2.0f", "3.0f"))
    assert kernel.patched
    handle(500, x, y)
    assert torch.equal(y, x * 3)
    kernel.revert()
    assert not kernel.patched
    handle(500, x, y)
    assert torch.equal(y, x * 2)


def test_an_edit_does_not_enter_the_cache_of_the_generated_program():
    _, kernel, _, _ = called(2)
    kernel.recompile(kernel.source.replace("2.0f", "5.0f"))

    class Again(Twice):
        pass

    _, _, x, y = called(2)
    other = Again(2)
    other(500, x, y)
    assert torch.equal(y, x * 2)


def test_a_harmless_edit_gives_the_same_result():
    _, kernel, x, y = called(3)
    kernel.recompile(kernel.source.replace("* 2.0f", "* (1.0f + 1.0f)"))
    found = kernel.compare()
    assert found.same and torch.equal(y, 2 * x)
    assert str(found) == "same result as the generated kernel on the last arguments"
    assert found.generated_seconds > 0 and found.edited_seconds > 0


def test_an_edit_that_stores_nothing_is_told_although_the_call_has_left_the_right_numbers():
    _, kernel, x, y = called(70)
    kernel.recompile(kernel.source.replace("int32_t tid", "if (n > 0) return;\n  int32_t tid", 1))
    assert kernel.compare().difference.startswith("y_ptr[0] is nan and was ")
    assert torch.equal(y, x * 2)


def test_a_wrong_edit_is_told_with_the_first_difference():
    _, kernel, x, y = called(4)
    before = y.clone()
    kernel.recompile(kernel.source.replace("2.0f", "4.0f"))
    found = kernel.compare()
    assert not found.same
    assert f"y_ptr[0] is {float(4 * x[0]):.1f}"[:12] in found.difference
    assert "500 of 500 elements differ" in found.difference
    assert found.max_error == pytest.approx(float((2 * x).abs().max()))
    assert torch.equal(y, before), "comparing leaves the arguments alone"


def test_a_text_that_does_not_compile_leaves_the_last_good_build():
    handle, kernel, x, y = called(5)
    kernel.recompile(kernel.source.replace("2.0f", "3.0f"))
    good = kernel.source
    with pytest.raises(ToolchainError) as caught:
        kernel.recompile(good.replace("3.0f", "3.0f +"))
    (first, *_) = caught.value.data["messages"]
    assert good.splitlines()[first.line - 1].strip().startswith("t")
    assert kernel.source == good
    handle(500, x, y)
    assert torch.equal(y, x * 3)


def test_an_edit_without_the_kernel_is_refused_in_words():
    _, kernel, _, _ = called(6)
    with pytest.raises(ToolchainError, match="the edited source has no TK_KERNEL"):
        kernel.recompile(kernel.source.replace("TK_KERNEL(twice_kernel)", ""))


def test_the_generated_text_is_no_edit():
    _, kernel, _, _ = called(7)
    kernel.recompile(kernel.source)
    assert not kernel.patched


def test_tensors_of_the_last_call_are_not_kept_alive():
    handle = Twice(8)
    handle(10, torch.randn(10), torch.zeros(10))
    gc.collect()
    handle.last.recompile(handle.source.replace("2.0f", "3.0f"))
    with pytest.raises(ArgumentError, match="the arguments of the last call are gone"):
        handle.last.compare()


def test_arguments_that_overlap_are_compared_as_they_overlap():
    handle = Twice(9)
    x = torch.randn(100)
    handle(100, x, x)
    kernel = handle.last
    kernel.recompile(kernel.source.replace("* 2.0f", "* (1.0f + 1.0f)"))
    assert kernel.compare().same
    whole = np.arange(300, dtype=np.float32)
    handle(100, whole[:100], whole[100:200])
    assert kernel.compare().same


def test_arrays_in_memory_of_torch_are_compared():
    handle = Twice(11)
    x, y = torch.randn(100), torch.zeros(100)
    arrays = x.numpy(), y.numpy()
    handle(100, *arrays)
    assert torch.equal(y, 2 * x)
    kernel = handle.last
    kernel.recompile(kernel.source.replace("* 2.0f", "* (1.0f + 1.0f)"))
    assert kernel.compare().same


@pytest.mark.parametrize("fails", [False, True])
def test_an_edit_that_spoils_its_process_spoils_no_other_kernel(fails):
    handle, kernel, x, y = called(12)
    close = "for (int file = 3; file < 64; ++file) close(file);" + (" y_ptr[1 << 30] = 0.0f;" if fails else "")
    spoiled = kernel.source.replace("{\n", "{\n  " + close + "\n", 1)
    kernel.recompile(spoiled.replace('extern "C"', 'extern "C" int close(int);\nextern "C"', 1))
    before = y.clone()
    with pytest.raises(KernelError):
        handle(500, x, y.zero_())
    assert not y.any() and before.any()
    _, _, x, y = called(13)
    assert torch.equal(y, 2 * x)
    kernel.revert()
    handle(500, x, y.zero_())
    assert torch.equal(y, 2 * x)


def test_an_error_in_an_edit_still_finds_the_line_of_the_kernel():
    handle, kernel, x, y = called(10)
    line = next(t for t in kernel.source.splitlines() if "x_ptr[" in t)
    kernel.recompile(kernel.source.replace("x_ptr[", "x_ptr[(1 << 30) + "))
    with pytest.raises(tilus.TilekitError) as caught:
        handle(500, x, y)
    assert "self.load_global(" in str(caught.value), line


# ------------------------------------------------------------------------------------------- the tile IR after a pass


def untouched(salt: int):
    """A kernel without the edits of other tests."""
    handle, kernel, x, y = called(salt)
    kernel.revert()
    return handle, kernel, x, y


def after(kernel, name: str) -> str:
    return next(step.after_text for step in kernel.trace.steps if step.name == name)


def test_case_51_a_kernel_is_compiled_on_from_an_edited_tile_program():
    handle, kernel, x, y = untouched(11)
    generated = kernel.source
    kernel.recompile_after("layout_inference", after(kernel, "layout_inference").replace("f32(2.0)", "f32(3.0)"))
    assert kernel.patched and kernel.edit_state == "PATCHED" and kernel.summary().split(" · ")[1] == "PATCHED"
    handle(500, x, y)
    assert torch.equal(y, x * 3)
    assert "f32(3.0)" in after(kernel, "lower_load_store"), "the passes behind it saw the edit"
    found = kernel.compare()
    assert not found.same and "was" in str(found)
    kernel.revert()
    assert (kernel.source, kernel.patched, kernel.edit_state) == (generated, False, "clean")
    handle(500, x, y)
    assert torch.equal(y, x * 2)


def test_case_51_the_second_pass_of_a_name_is_meant_by_its_number():
    _, kernel, _, _ = untouched(12)
    steps = [step for step in kernel.trace.steps if step.name == "dead_code_elimination"]
    kernel.recompile_after("dead_code_elimination#2", steps[1].after_text.replace("f32(2.0)", "f32(5.0)"))
    assert "5.0f" in kernel.source
    assert "f32(2.0)" in after(kernel, "bound_aware_simplify"), "the passes before it did not"


def test_case_51_a_source_is_edited_on_top_of_an_edited_tile_program():
    handle, kernel, x, y = untouched(13)
    kernel.recompile_after("layout_inference", after(kernel, "layout_inference").replace("f32(2.0)", "f32(3.0)"))
    of_tile = kernel.source
    kernel.recompile(of_tile.replace("3.0f", "(3.0f + 4.0f)"))
    handle(500, x, y)
    assert torch.equal(y, x * 7)
    kernel.recompile(of_tile)
    assert (kernel.source, kernel.patched) == (of_tile, True)
    kernel.revert()
    assert not kernel.patched


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (("x * 2", "x *"), None, ""),
        (("mul(", "mul(nothing, "), LanguageError, "tile IR, line [0-9]+, column [0-9]+: "),
        (("warps=4", "warps=2"), VerificationError, "thread"),
    ],
)
def test_case_51_a_tile_program_that_is_none_leaves_the_last_good_build(change, error, words):
    _, kernel, _, _ = untouched(14)
    source, text = kernel.source, after(kernel, "layout_inference").replace(*change)
    if error is None:  # nothing was changed: it is no edit
        kernel.recompile_after("layout_inference", text)
    else:
        with pytest.raises(error, match=words):
            kernel.recompile_after("layout_inference", text)
    assert (kernel.source, kernel.patched) == (source, False)


def test_case_51_a_pass_that_there_is_not_is_told_with_those_that_there_are():
    _, kernel, _, _ = untouched(15)
    with pytest.raises(ArgumentError, match="did you mean layout_inference") as caught:
        kernel.recompile_after("layout_inferense", "")
    assert caught.value.code == "TK412" and "declare_to_let, " in str(caught.value)


@pytest.mark.parametrize(
    ("step", "text", "code"), [(5, "", "TK412"), (["layout_inference"], "", "TK412"), ("layout_inference", 5, "TK625")]
)
def test_what_is_no_text_is_no_edit(step, text, code):
    _, kernel, _, _ = untouched(15)
    with pytest.raises(ArgumentError) as caught:
        kernel.recompile_after(step, text)
    assert caught.value.code == code


def test_case_51_edits_after_several_passes_hold_together_and_end_one_by_one():
    handle, kernel, x, y = untouched(16)
    made = after(kernel, "layout_inference")
    kernel.recompile_after("layout_inference", made.replace("f32(2.0)", "f32(3.0)"))
    text = after(kernel, "bound_aware_simplify")
    kernel.recompile_after("bound_aware_simplify", text.replace("f32(3.0)", "f32(4.0)"))
    assert [name[3:] for name in kernel.metadata["edited_passes"]] == ["layout_inference", "bound_aware_simplify"]
    handle(500, x, y)
    assert torch.equal(y, x * 4)
    kernel.recompile_after("bound_aware_simplify", text)
    handle(500, x, y)
    assert torch.equal(y, x * 3)
    kernel.recompile_after("layout_inference", made)
    assert (kernel.patched, kernel.edit_state) == (False, "clean")


def test_the_example_runs():
    (example,) = doctest.DocTestFinder().find(Kernel.recompile_after, "recompile_after", globs={})
    assert example.examples and doctest.DocTestRunner().run(example).failed == 0
