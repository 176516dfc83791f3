# SPDX-License-Identifier: Apache-2.0
"""IRVisitor/IRRewriter Pitfalls."""

import dataclasses

import pytest
from hidet.ir import Var as HidetVar
from hidet.ir.tools import collect as hidet_collect

from tests.promises.kernels import Memory, function
from tilekit import dtypes
from tilekit.ir.functors import IRVisitor
from tilekit.ir.inst import REGISTRY, Role
from tilekit.ir.instructions.memory import LoadGlobalInst
from tilekit.ir.instructions.register import AllocateRegisterInst
from tilekit.ir.stmt import DeclareStmt, Stmt, TensorItemPtrStmt, TensorItemValueStmt
from tilekit.ir.tools.instruction_collector import collect
from tilekit.lowir import scalar
from tilekit.lowir.scalar import Expr
from tilekit.transforms import dead_code_elimination_pass


class Exprs(IRVisitor):
    """Notes the expressions that it is shown."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def visit_Expr(self, expr):
        self.seen.append(expr)


@pytest.fixture
def inside():
    """A variable deep in an expression."""
    var = scalar.var("k", dtypes.int32)
    return var, scalar.mul(scalar.add(var, scalar.constant(dtypes.int32, 3)), var)


def test_visit_expr_is_a_no_op_in_a_visitor(inside):
    var, expr = inside
    visitor = IRVisitor()
    assert visitor(expr) is None
    assert id(var) not in visitor.memo


def test_a_visitor_does_not_descend_into_an_expression(inside):
    _, expr = inside
    visitor = Exprs()
    visitor(DeclareStmt(scalar.var("d", dtypes.int32), expr))
    assert visitor.seen == [expr]


def test_hidet_collects_the_variables_of_our_expressions(inside):
    var, expr = inside
    assert [found is var for found in hidet_collect(expr, HidetVar)] == [True]
    assert scalar.free_vars(expr) == (var,)


def test_the_memo_prevents_visiting_again(inside):
    _, expr = inside
    visitor = Exprs()
    first, second = (DeclareStmt(scalar.var("d", dtypes.int32), expr) for _ in range(2))
    visitor(first)
    visitor(second)
    assert visitor.seen == [expr]


def test_variables_are_found_in_every_place_by_collecting_from_attributes(inside):
    var, expr = inside
    memory = Memory()
    loads = [memory.load().replace(offsets=(expr,)) for _ in range(2)]
    found = [
        used
        for load in loads
        for value in load.attributes.values()
        for part in (value if isinstance(value, tuple) else (value,))
        if isinstance(part, Expr)
        for used in hidet_collect(part, HidetVar)
    ]
    assert found == [var, var]


def test_instructions_hold_expressions_outside_their_tensors():
    holders = {cls.__name__ for cls in REGISTRY.values() if Role.SCALAR in cls.roles().values()}
    assert {"GlobalViewInst", "LoadGlobalInst", "StoreGlobalInst", "AllocateRegisterInst"} <= holders


@pytest.mark.parametrize("cls", REGISTRY.values(), ids=REGISTRY)
def test_attributes_are_all_fields_that_are_neither_output_nor_inputs(cls):
    fields = {field.name for field in dataclasses.fields(cls)} - {"output", "span"}
    tensors = {name for name, role in cls.roles().items() if role in (Role.OPERAND, Role.INOUT)}
    empty = cls(None, **dict.fromkeys(fields))
    assert isinstance(empty.attributes, dict)
    assert empty.attributes.keys() == fields - tensors


def test_a_variable_that_only_an_attribute_uses_is_alive():
    memory = Memory()
    k = scalar.var("k", dtypes.int32)
    declared = DeclareStmt(k, scalar.constant(dtypes.int32, 4))
    fill = AllocateRegisterInst.create(memory.load().register_output, lambda axes: scalar.cast(k, dtypes.float32))
    func = function([memory.made, declared, fill, memory.store(fill.register_output)], memory.params)
    assert dead_code_elimination_pass().process_function(func) is func


# -------------------------------------------------------------------------------------------------------- tensor items


@pytest.mark.parametrize(
    ("cls", "fields"), [(TensorItemValueStmt, {"var", "tensor"}), (TensorItemPtrStmt, {"ptr_var", "tensor"})]
)
def test_a_tensor_item_statement_binds_a_variable(cls, fields):
    assert issubclass(cls, Stmt) and fields <= {field.name for field in dataclasses.fields(cls)}


def with_item(used: bool):
    """A load, its first element as a scalar, and a store that uses the scalar or not."""
    memory = Memory()
    load = memory.load(size=1)
    item = scalar.var("item", dtypes.float32)
    bind = TensorItemValueStmt(item, load.register_output)
    value = item if used else scalar.constant(dtypes.float32, 1.0)
    fill = AllocateRegisterInst.create(memory.load().register_output, lambda axes: value)
    func = function([memory.made, load, bind, fill, memory.store(fill.register_output)], memory.params)
    return func, bind


def test_an_item_that_is_used_keeps_its_statement_and_its_tensor_alive():
    func, _ = with_item(used=True)
    assert dead_code_elimination_pass().process_function(func) is func


def test_an_item_that_is_not_used_keeps_neither():
    func, bind = with_item(used=False)
    after = dead_code_elimination_pass().process_function(func)
    assert collect(after, (type(bind), LoadGlobalInst)) == []
