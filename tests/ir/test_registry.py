# SPDX-License-Identifier: Apache-2.0
"""Every instruction goes the whole way: from what a person writes through every target that claims to have code for it.

What a class itself must have is in `tests/backends/test_registry.py`.
"""

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.lang.cells import cell, function_of
from tilekit import drivers, target
from tilekit.backends import registry
from tilekit.ir import evaluator
from tilekit.ir.inst import REGISTRY, Instruction
from tilekit.ir.prog import Program
from tilekit.ir.text import parser
from tilekit.ir.tools import collect_instructions, verify
from tilekit.ir.tools.equality import structurally_equal
from tilekit.lang.methods import KernelMethods
from tilekit.lowir import prims

SAMPLES = Path(__file__).parent / "samples"
KERNELS = Path(__file__).parents[1] / "kernels"

# In a kernel with int32 m and n, p: ~float32, q: ~int32, g, an m × n view of p, x and h, tiles of 16 × 16 float32 and
# float16, s, a shared tensor like x, and v, shared words: how a person writes each instruction.
WRITTEN = {
    "add": "self.store_global(g, self.add(x, x), offsets=[0, 0])",
    "annotate_layout": "self.annotate_layout(x, tilus.RegisterLayout((16, 16), (16, 2, 8), (0, 1), (2,)))",
    "assign": "self.assign(x, x + 1.0)",
    "assume": "self.assume(n % 16 == 0 and m <= 4096)",
    "binary": "self.store_global(g, self.maximum(x, 0.5), offsets=[0, 0])",
    "cast": "self.store_global(g, self.cast(h, float32), offsets=[0, 0])",
    "copy_async": "self.copy_async(g, s, offsets=[0, 0], evict='evict_first')",
    "copy_async_commit_group": "self.copy_async_commit_group()",
    "copy_async_wait_all": "self.copy_async_wait_all()",
    "copy_async_wait_group": "self.copy_async_wait_group(1)",
    "div": "self.store_global(g, x / x, offsets=[0, 0])",
    "dot": "self.store_global(g, self.dot(h, h.transpose(), acc_dtype=float32), offsets=[0, 0])",
    "free_shared": "self.free_shared(s)",
    "global_tensor": "w = self.global_tensor(float32, [m, n], requires_clean=False)",
    "global_view": "self.global_view(q, dtype=int32, shape=[n])",
    "load_global": "self.load_global(g, offsets=[0, 0], shape=[16, 16])",
    "load_shared": "self.store_shared(s, x); self.sync(); self.store_global(g, self.load_shared(s), offsets=[0, 0])",
    "lock_semaphore": "w = self.global_tensor(int32, [1], requires_clean=True); self.lock_semaphore(w.item_ptr(), 0)",
    "mul": "self.store_global(g, x * x, offsets=[0, 0])",
    "permute_shared": "self.store_shared(s.permute([1, 0]), x)",
    "print_tensor": "self.print_tensor('x', x)",
    "printf": "self.printf('%d\\n', n)",
    "reduce": "self.store_global(g, self.sum(x, dim=1, keepdim=True), offsets=[0, 0])",
    "register_tensor": "self.register_tensor(dtype=int32, shape=[8], init=lambda i: i + n)",
    "release_semaphore": "self.release_semaphore(self.global_view(q, dtype=int32, shape=[n])[0].item_ptr(), 0)",
    "reshape": "self.store_global(g, self.reshape(x, [8, 32]), offsets=[0, 0])",
    "reshape_shared": "self.store_shared(self.reshape_shared(s, [256]), self.reshape(x, [256]))",
    "shared_tensor": "t = self.shared_tensor(dtype=float32, shape=[16, 16]); self.store_shared(t, x)",
    "slice_assign": "r = self.register_tensor(dtype=int32, shape=[4, 32], init=0); r[2] = n; self.store_shared(v, r)",
    "slice_register": "self.store_shared(v[0], self.register_tensor(dtype=int32, shape=[4, 32], init=n)[2])",
    "slice_shared": "self.store_shared(v[n % 4], self.register_tensor(dtype=int32, shape=[32], init=0))",
    "squeeze": "self.store_global(g, self.squeeze(self.sum(x, dim=0, keepdim=True), dim=0), offsets=[0, 0])",
    "store_global": "self.store_global(g, x, offsets=[0, 0])",
    "store_shared": "self.store_shared(s, x)",
    "sub": "self.store_global(g, x - x, offsets=[0, 0])",
    "sync": "self.sync()",
    "transpose": "self.store_global(g, self.transpose(x), offsets=[0, 0])",
    "unary": "self.store_global(g, self.exp(x), offsets=[0, 0])",
    "unsqueeze": "self.store_global(g, self.unsqueeze(self.sum(x, dim=0), dim=0), offsets=[0, 0])",
    "view": "self.store_shared(s, self.view(self.view(x, dtype=int32), dtype=float32))",
    "where": "self.store_global(g, self.where(x > 0.5, x, 0.0), offsets=[0, 0])",
}

# what nobody writes, and why
MADE_BY_PASSES = {
    "load_global_generic": "load_global becomes it",
    "store_global_generic": "store_global becomes it",
    "copy_async_generic": "copy_async becomes it",
}

# what tests of kernels write where it is not the method of that name
IN_KERNELS = {
    "binary": r"self\.maximum\(",
    "div": r" / ",
    "mul": r" \* ",
    "permute_shared": r"\.permute\(",
    "reduce": r"self\.sum\(",
    "slice_assign": r"\] = ",
    "slice_register": r"\w\[\w+\]",
    "slice_shared": r"\w\[\w+\]",
    "sub": r" - ",
    "unary": r"self\.exp\(",
    "add": r" \+ ",
    "global_view": r"self\.global_view\(",
}

# instructions on several tensors without a rule for how these lie to one another, and why
WITHOUT_A_RULE = {
    "copy_async": "it brings every element to any place",
}

KERNEL = """
class Kernel(tilus.Script):
    def __call__(self, m: int32, n: int32, p: ~float32, q: ~int32):
        self.attrs.blocks = [1]
        self.attrs.warps = 1
        g = self.global_view(p, dtype=float32, shape=[m, n])
        x = self.register_tensor(dtype=float32, shape=[16, 16], init=1.0)
        h = self.register_tensor(dtype=float16, shape=[16, 16], init=1.0)
        s = self.shared_tensor(dtype=float32, shape=[16, 16])
        v = self.shared_tensor(dtype=int32, shape=[4, 32])
        {lines}
"""


@cache
def written(opcode: str) -> Program:
    """The program of a kernel that uses an instruction."""
    lines = "\n        ".join(WRITTEN[opcode].split("; "))
    handle = cell(KERNEL.format(lines=lines))["Kernel"]()
    func = function_of(handle, 16, 16, torch.zeros(16, 16), torch.zeros(256, dtype=torch.int32))
    return Program.create({func.name: func})


@pytest.mark.parametrize("opcode", sorted(REGISTRY))
def test_a_person_can_write_it_or_there_is_a_reason(opcode):
    if opcode in MADE_BY_PASSES:
        assert opcode not in WRITTEN
        return
    assert opcode in WRITTEN, f"write {opcode} in WRITTEN, or why nobody does in MADE_BY_PASSES"
    found = {inst.opcode for inst in collect_instructions(written(opcode).function)}
    assert opcode in found
    for method in re.findall(r"self\.(\w+)\(", WRITTEN[opcode]):
        assert len((getattr(KernelMethods, method).__doc__ or "").strip()) > 20


@pytest.mark.parametrize("opcode", WRITTEN)
def test_what_is_written_reads_back_and_means_something(opcode):
    prog = written(opcode)
    assert structurally_equal(parser.parse_program(str(prog)), prog)
    arguments = [16, 16, np.zeros((16, 16), np.float32), np.zeros(256, np.int32)]
    evaluator.run(prog, arguments)


CLAIMED = [(opcode, each.name) for opcode in sorted(WRITTEN) for each in registry.claimed(REGISTRY[opcode])]


@cache
def source(opcode: str, name: str) -> str:
    prog = drivers.optimize_program(written(opcode))
    verify(prog)
    return drivers.generate_source(prog, target.parse(name))[0].text


@pytest.mark.parametrize(("opcode", "name"), CLAIMED)
def test_it_has_code_on_every_target_that_claims_it(opcode, name):
    assert "__global__" in source(opcode, name)


@pytest.mark.parametrize(("opcode", "name"), CLAIMED)
def test_its_code_calls_what_is_there_on_that_target_and_on_the_cpu(opcode, name):
    for called in set(re.findall(r"tk::(\w+)", source(opcode, name))):
        rows = [row for row in prims.PRIMITIVES if row.name.split("<")[0] == f"tk::{called}"]
        assert rows, f"tk::{called} is in no row of tilekit/lowir/prims.py"
        assert any(row.on_cpu and target.parse(name).supports(target.parse(row.target)) for row in rows), called


@pytest.mark.parametrize("opcode", sorted(REGISTRY))
def test_tensors_that_meet_have_a_rule_for_how_they_lie(opcode):
    cls = REGISTRY[opcode]
    sample = parser.parse_program((SAMPLES / f"{opcode}.tile").read_text())
    several = [inst for inst in collect_instructions(sample.function) if type(inst) is cls and _laid_out(inst) > 1]
    has_rule = cls.propose is not Instruction.propose
    assert has_rule or not several or opcode in WITHOUT_A_RULE, (
        f"write propose() of {cls.__name__}, or why there is none"
    )
    assert not (has_rule and opcode in WITHOUT_A_RULE)


def _laid_out(inst: Instruction) -> int:
    return len(set(inst.laid_out_tensors))


@pytest.mark.parametrize("opcode", WRITTEN)
def test_a_test_of_kernels_uses_it(opcode):
    pattern = IN_KERNELS.get(opcode, rf"\.{opcode}\(")
    assert any(re.search(pattern, text) for text in kernel_tests()), f"no file in tests/kernels says {pattern}"


@cache
def kernel_tests() -> list[str]:
    return [path.read_text() for path in KERNELS.rglob("*.py")]
