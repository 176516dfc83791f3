# SPDX-License-Identifier: Apache-2.0
"""Writing Passes."""

import importlib
import inspect
import pkgutil

import pytest

from tests.promises.kernels import Memory, description, function, scaling, tile
from tilekit import drivers, transforms
from tilekit.ir.functors import IRRewriter, IRVisitor
from tilekit.ir.functors import functor as functors
from tilekit.ir.instructions.elementwise import AddInst, MulInst
from tilekit.ir.instructions.sync import SyncThreadsInst
from tilekit.ir.prog import Program
from tilekit.ir.stmt import InstStmt, SeqStmt
from tilekit.ir.tools.instruction_collector import collect_instructions
from tilekit.lowir import scalar
from tilekit.transforms import base, custom


class AddsBecomeProducts(IRRewriter):
    def visit_AddInst(self, inst):
        return MulInst.create(self.visit(inst.x), self.visit(inst.y), inst.output)


class AddsBecomeProductsPass(base.Pass):
    def process_function(self, func):
        return AddsBecomeProducts()(func)


def adding():
    memory = Memory()
    load = memory.load()
    add = AddInst.create(load.register_output, load.register_output)
    return function([memory.made, load, add, memory.store(add.register_output)], memory.params)


def kinds(func):
    return [type(inst).__name__ for inst in collect_instructions(func)]


# ------------------------------------------------------------------------------------------------------------ passes


def test_a_pass_overrides_process_function():
    func = adding()
    program = Program.create({func.name: func})
    after = AddsBecomeProductsPass()(program)
    assert kinds(after.function) == ["GlobalViewInst", "LoadGlobalInst", "MulInst", "StoreGlobalInst"]
    assert kinds(program.function) == ["GlobalViewInst", "LoadGlobalInst", "AddInst", "StoreGlobalInst"]


def test_a_pass_without_process_function_changes_nothing():
    func = adding()
    program = Program.create({func.name: func})
    assert base.Pass()(program) is program


def test_every_pass_is_registered_and_its_factory_exported():
    found = {
        cls
        for module in pkgutil.iter_modules(transforms.__path__, "tilekit.transforms.")
        for _, cls in inspect.getmembers(importlib.import_module(module.name), inspect.isclass)
        if issubclass(cls, base.Pass) and cls not in (base.Pass, custom.Custom)  # the latter holds a person's
    }
    assert {type(each) for each in transforms.get_default_passes()} == found != set()
    for cls in found:
        factory = f"{cls().name}_pass"
        assert factory in transforms.__all__
        assert type(getattr(transforms, factory)()) is cls


def test_a_registered_pass_runs_in_every_compile(monkeypatch):
    seen = []

    class Looks(base.Pass):
        def process_function(self, func):
            seen.append(func.name)
            return func

    passes = [Looks(), *transforms.get_default_passes()]
    monkeypatch.setattr(drivers, "get_default_passes", lambda: passes)
    scaling().compile(*description(), device="cpu")
    assert len(seen) == 1


# --------------------------------------------------------------------------------------------- visitors and rewriters


def test_a_rewriter_lives_in_functor_and_visits_by_class():
    assert functors.IRRewriter is IRRewriter and functors.IRVisitor is IRVisitor
    assert kinds(AddsBecomeProducts()(adding())).count("MulInst") == 1


def test_a_rewriter_that_overrides_nothing_returns_the_same_object():
    func = adding()
    assert IRRewriter()(func) is func


@pytest.mark.parametrize("base", [IRVisitor, IRRewriter])
def test_the_memo_goes_by_identity(base):
    visited = []

    class Looks(base):
        def visit_SyncThreadsInst(self, inst):
            visited.append(inst)
            return inst

    once, twice = SyncThreadsInst.create(), SyncThreadsInst.create()
    Looks()(function([once, twice, once, twice]))
    assert visited == [once, twice]


def test_every_instruction_is_rewritten_by_visit_instruction():
    new = tile()

    class Rename(IRRewriter):
        def visit_RegisterTensor(self, tensor):
            return new if tensor is old else tensor

        def visit_Expr(self, expr):
            return scalar.rewrite(expr, {memory.n: other})

    memory = Memory()
    other = scalar.var("m", scalar.dtype_of(memory.n))
    old = tile()
    load = memory.load().replace(output=old, offsets=(memory.n,))
    add = AddInst.create(old, old)
    rewriter = Rename()
    loaded, added = rewriter(load), rewriter(add)
    assert loaded.output is new and loaded.offsets == (other,) and type(loaded) is type(load)
    assert added.inputs == (new, new) and added.output is add.output
    assert "visit_AddInst" not in dir(IRRewriter) and "visit_LoadGlobalInst" not in dir(IRRewriter)


def test_an_inst_stmt_visits_its_instruction():
    new = SyncThreadsInst.create()

    class Replace(IRRewriter):
        def visit_Instruction(self, inst):
            return new

    assert Replace()(InstStmt(SyncThreadsInst.create())).inst is new


def test_a_visitor_that_returns_none_leaves_an_empty_sequence():
    class Drop(IRRewriter):
        def visit_SyncThreadsInst(self, inst):
            return None

    left = Drop()(InstStmt(SyncThreadsInst.create()))
    assert type(left) is SeqStmt and left.seq == ()
    memory = Memory()
    assert kinds(Drop()(function([memory.made, SyncThreadsInst.create()], memory.params))) == ["GlobalViewInst"]


def test_visit_with_the_name_of_an_instruction_class_takes_it_alone():
    visited = []

    class Looks(IRVisitor):
        def visit_LoadGlobalInst(self, inst):
            visited.append(inst)

        def visit_Instruction(self, inst):
            visited.append(type(inst))

    func = adding()
    Looks()(func)
    view, load, add, store = collect_instructions(func)
    assert visited == [type(view), load, type(add), type(store)]


def test_a_visitor_dispatches_alike_and_returns_nothing():
    seen = []

    class Looks(IRVisitor):
        def visit_RegisterTensor(self, tensor):
            seen.append(tensor)

    func = adding()
    assert Looks()(func) is None
    _, load, add, _ = collect_instructions(func)
    assert seen == [load.output, add.output]


# ---------------------------------------------------------------------------------------------------------- identity


def test_tensors_that_look_alike_stay_two_in_the_memo():
    a, b = tile(), tile()
    visitor = IRVisitor()
    visitor(AddInst.create(a, b))
    assert {id(a), id(b)} <= visitor.memo.keys()
    swapped = IRRewriter()
    assert swapped(AddInst.create(a, b)).inputs == (a, b)
