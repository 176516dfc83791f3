# SPDX-License-Identifier: Apache-2.0
"""Which line comes from which, on the whole way from the lines of a person to machine code."""

import doctest
import linecache
import random
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

import tilekit as tilus
from tests.jit import followed
from tests.jit.followed import Matmul, Softmax, VectorAdd
from tests.kernels.first import first_kernel
from tilekit import float16, float32
from tilekit.diag import ArgumentError, ToolchainError
from tilekit.ir.prog import Program
from tilekit.jit import lines
from tilekit.jit.instantiated import InstantiatedScript
from tilekit.jit.kernel import Kernel
from tilekit.lowir.nodes import IRModule
from tilekit.toolchain import toolkit

pytest.importorskip("cuda.bindings.nvrtc", reason="needs pip install 'tilekit[cuda]'")

needs_nvdisasm = pytest.mark.skipif(toolkit.nvdisasm() is None, reason="needs pip install nvidia-cuda-nvdisasm")


class Unrolled(tilus.Script):
    def __call__(self, x_ptr: ~float32):
        self.attrs.blocks = [1]
        self.attrs.warps = 1
        g = self.global_view(x_ptr, dtype=float32, shape=[8, 32])
        for i in (0, 1, 2, 3):
            self.store_global(g, self.load_global(g, offsets=[i, 0], shape=[1, 32]) + 1.0, offsets=[i + 4, 0])


@dataclass(frozen=True)
class Texts:
    """A kernel with its texts."""

    kernel: Kernel

    def text(self, language: str, line: int) -> str:
        if language == "cell":
            return linecache.getline(followed.__file__, line)
        return self.lines(language)[line - 1]

    def lines(self, language: str) -> list[str]:
        steps = self.kernel.trace.steps
        match language:
            case "tile":
                return str(self.kernel.program).split("\n")
            case "hidet":
                return next(s.before_text for s in steps if s.name == "print_module").split("\n")
            case "cuda":
                return self.kernel.source.split("\n")
            case "ptx":
                return self.kernel.ptx.split("\n")
            case _:
                return self.kernel.sass.split("\n")

    def at(self, language: str, part: str) -> list[int]:
        """The lines that have a part."""
        found = [number for number, line in enumerate(self.lines(language), start=1) if part in line]
        assert found, f"no line of {language} has {part}"
        return found

    def related(self, language: str, line: int, to: str) -> set[str]:
        """The texts of the lines that belong with one."""
        return {self.text(to, other).strip() for other in self.kernel.lines(language, line)[to]}


def compiled(handle: tilus.Script, arguments: Sequence[object]) -> Texts:
    return Texts(first_kernel(handle, arguments, "sm_80"))


def spec(*shape: int, dtype=float16):
    return tilus.spec(dtype, shape)


@pytest.fixture(scope="module")
def add():
    vector = spec(1000, dtype=float32)
    return compiled(VectorAdd(), (1000, vector, vector, vector))


@pytest.fixture(scope="module")
def softmax():
    return compiled(Softmax(), (30, 1000, spec(30, 1000), spec(30, 1000)))


@pytest.fixture(scope="module")
def matmul():
    return compiled(Matmul(), (130, 70, 50, spec(130, 50), spec(50, 70), spec(130, 70)))


def test_a_vector_add_is_followed_line_by_line(add):
    (cell,) = add.related("cuda", add.at("cuda", " + y[")[0], "cell")
    assert cell.startswith("self.store_global(gz, x + y")
    loads = add.at("cuda", "tk::load_global")
    assert [add.related("cuda", line, "cell").pop()[:2] for line in loads] == ["x ", "y "]
    (start,) = add.at("cuda", "start = (int)blockIdx.x * 512")
    assert add.related("cuda", start, "tile") == {"start: i32 = block_idx_x * i32(512)"}
    assert add.related("cuda", start, "hidet") == {"declare start: int32 = (blockIdx.x * 512)"}


def test_every_line_of_tensor_core_code_comes_from_the_line_with_the_dot(matmul):
    dot = "acc = self.dot(self.load_shared(sa), self.load_shared(sb), acc)"
    for language, part in (("cuda", "tk::mma"), ("hidet", "tk::mma"), ("ptx", "mma.sync")):
        for line in matmul.at(language, part):
            assert matmul.related(language, line, "cell") == {dot}
            (tile,) = matmul.related(language, line, "tile")
            assert tile.startswith("acc = dot(")


@needs_nvdisasm
def test_every_instruction_of_the_tensor_cores_comes_from_the_line_with_the_dot(matmul):
    found = matmul.at("sass", "HMMA.")
    assert len(found) == len(matmul.at("ptx", "mma.sync"))
    for line in found:
        assert matmul.related("sass", line, "cuda").pop().startswith("tk::mma_tile_m16n8k16")
        assert matmul.related("sass", line, "ptx").pop().startswith("mma.sync")
    dot = next(n for n in range(1, 999) if "self.dot(" in linecache.getline(followed.__file__, n))
    assert set(found) <= set(matmul.kernel.lines("cell", dot)["sass"])


@needs_nvdisasm
def test_almost_all_of_the_machine_code_has_a_line_of_the_person(matmul):
    code = [line for line in matmul.at("sass", "/*") if "NOP" not in matmul.text("sass", line)]
    known = [line for line in code if matmul.kernel.lines("sass", line)["cell"]]
    assert len(known) > 0.95 * len(code)


def test_an_address_at_the_top_of_the_kernel_is_computed_for_the_first_that_uses_it(matmul):
    (address,) = matmul.at("cuda", "int32_t sa_swizzled = ")
    assert matmul.related("cuda", address, "tile") == {"store_shared(sa, t)"}
    (index,) = matmul.at("cuda", "int32_t tid = threadIdx.x;")
    assert matmul.related("cuda", index, "cell") == set()


def test_a_line_of_a_helper_method_is_the_line_in_the_helper(softmax):
    for line in softmax.at("cuda", "= load_global_generic("):
        (cell,) = softmax.related("cuda", line, "cell")
        assert cell.startswith("x = self.load_global(gx, offsets=[row, 0]")
    (exp,) = softmax.related("cuda", softmax.at("cuda", "tk::exp")[0], "cell")
    assert exp.startswith("y = self.exp(x - self.max(")


@pytest.mark.parametrize("name", ["add", "softmax", "matmul"])
def test_lines_lead_back_to_where_one_came_from(name, request):
    texts = request.getfixturevalue(name)
    source = texts.lines("cuda")
    for line in random.sample(range(1, len(source)), 12):
        found = texts.kernel.lines("cuda", line)
        assert found["cuda"] == [line]
        for language, others in found.items():
            for other in random.sample(others, min(3, len(others))):
                assert line in texts.kernel.lines(language, other)["cuda"]


@pytest.mark.parametrize("name", ["add", "softmax", "matmul"])
def test_every_statement_has_a_line_of_the_person(name, request):
    texts = request.getfixturevalue(name)
    body = texts.lines("tile").index(next(line for line in texts.lines("tile") if line.startswith("def "))) + 2
    for line in range(body, len(texts.lines("tile")) + 1):
        assert len(texts.kernel.lines("tile", line)["cell"]) == 1, texts.text("tile", line)
    comments = texts.at("cuda", "  // ")
    assert all(texts.kernel.lines("cuda", line)["cell"] for line in comments)


@pytest.mark.parametrize("name", ["add", "softmax", "matmul"])
def test_a_line_that_a_pass_leaves_alone_comes_from_itself(name, request):
    for step in request.getfixturevalue(name).kernel.trace.changed:
        old, new = step.before_text.split("\n"), step.after_text.split("\n")
        found = lines.LineMaps().of_step(step.stage, step.before, step.after)
        assert found is not None and len(found) == len(new)
        alone = [line for line, text in enumerate(new) if old.count(text) == new.count(text) == 1]
        assert [old[found[line]] for line in alone] == [new[line] for line in alone]
        body = next(k for k, text in enumerate(new) if text.startswith("def "))
        assert None not in found[body:], (step.name, new[body + found[body:].index(None)])


def test_lines_that_python_repeated_are_followed_one_by_one():
    texts = compiled(Unrolled(), (spec(8, 32, dtype=float32),))
    for part, word in (("load_global_generic(", "load_global("), ("store_global_generic(", "store_global(")):
        written = [line for line, text in enumerate(texts.lines("tile"), start=1) if word in text]
        lowered = texts.at("cuda", part)
        assert len(written) == len(lowered) == 4
        assert [texts.kernel.lines("cuda", line)["tile"] for line in lowered] == [[line] for line in written]


def test_lines_of_an_edit_come_from_those_that_they_share_with_the_generated_source(add):
    kernel = add.kernel
    (sum_,) = add.at("cuda", " + y[")
    kernel.recompile(kernel.source.replace("{\n", "{\n  // mine\n", 1))
    try:
        found = kernel.lines("cuda", sum_ + 1)
        assert [linecache.getline(followed.__file__, line).strip()[:17] for line in found["cell"]] == [
            "self.store_global"
        ]
        assert any("add.f32" in add.text("ptx", line) for line in found["ptx"])
        (mine,) = add.at("cuda", "// mine")
        assert kernel.lines("cuda", mine)["cell"] == []
    finally:
        kernel.revert()


@pytest.mark.parametrize(("language", "line"), [("cuda", 0), ("cuda", 10_000), ("cell", 1), ("tile", -1), ("llvm", 1)])
def test_a_line_that_there_is_not_is_a_sentence(add, language, line):
    with pytest.raises(ArgumentError) as caught:
        add.kernel.lines(language, line)
    assert caught.value.code == "TK646" and language in str(caught.value)


def test_where_a_tool_is_missing_its_language_is_left_out_unless_it_is_asked_for(add, monkeypatch):
    monkeypatch.setattr(toolkit, "nvdisasm", lambda: None)
    kernel = add.kernel
    kernel.recompile(f"{kernel.source}// {random.random()}\n")  # whose machine code nobody has looked at
    try:
        assert list(kernel.lines("cuda", 1)) == ["cell", "tile", "hidet", "cuda", "ptx"]
        with pytest.raises(ToolchainError, match="there is no nvdisasm") as caught:
            kernel.lines("sass", 1)
        assert "pip install nvidia-cuda-nvdisasm" in str(caught.value)
    finally:
        kernel.revert()


def test_the_maps_of_a_step_are_as_long_as_the_text_that_it_made(matmul):
    maps, steps = lines.LineMaps(), matmul.kernel.trace.steps
    assert all(maps.take(value) for key, value in matmul.kernel.trace.notes.items() if key != "layouts")
    for step in steps:
        if step.after is not step.before:
            found = maps.of_step(step.stage, step.before, step.after)
            assert found is not None and len(found) == len(step.after_text.split("\n")), step.name
            assert maps.text_of(step.after) == step.after_text
    assert any(isinstance(step.before, Program) and isinstance(step.after, IRModule) for step in steps)


def test_the_example_of_the_documentation_runs():
    (example,) = doctest.DocTestFinder().find(InstantiatedScript.lines, "lines", globs={})
    assert example.examples and doctest.DocTestRunner().run(example).failed == 0
