# SPDX-License-Identifier: Apache-2.0
import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ir.layout.strategies import BINARY_EXTENTS, broadcasts, extents, indices, layouts, places
from tilekit.ir.layout import mapping, ops
from tilekit.ir.layout.mapping import Source, Term, evaluate
from tilekit.ir.layout.ops import LayoutOperationError, local, register_layout, replicated, spatial

few = settings(max_examples=40, deadline=None)


@few
@given(layouts())
def test_index_terms_are_the_global_index(layout):
    terms = mapping.index_terms(layout)
    assert len(terms) == len(layout.shape)
    for (thread, register), index in places(layout).items():
        assert tuple(evaluate(t, thread=thread, local=register) for t in terms) == index


@few
@given(layouts())
def test_index_terms_are_as_few_as_the_modes_of_the_canonical_form(layout):
    terms = [term for summands in mapping.index_terms(layout) for term in summands]
    assert len(terms) == len(ops.canonicalize(layout).mode_shape)
    size = {Source.THREAD: layout.spatial_size, Source.LOCAL: layout.local_size}
    for term in terms:
        assert term.modulus is None or 1 < term.modulus < size[term.source] // term.divisor
        assert term.divisor < size[term.source]


@few
@given(layouts())
def test_replica_terms_number_the_holders_of_an_element(layout):
    terms = mapping.replica_terms(layout)
    for index in indices(layout.shape):
        numbers = [evaluate(terms, thread=thread) for thread in layout.get_spatial(index)]
        assert numbers == list(range(layout.num_replicas))


def test_terms_of_a_layout_a_person_can_check():
    layout = local(2, 1).spatial(8, 4).local(1, 2)
    rows, columns = mapping.index_terms(layout)
    assert rows == (Term(Source.LOCAL, 2, None, 8), Term(Source.THREAD, 4, None, 1))
    assert columns == (Term(Source.THREAD, 1, 4, 2), Term(Source.LOCAL, 1, 2, 1))
    assert list(map(str, (*rows, *columns))) == ["local // 2 * 8", "thread // 4", "thread % 4 * 2", "local % 2"]
    assert mapping.index_terms(spatial(1, 1)) == ((), ())
    assert mapping.index_terms(replicated(num_workers=4) * spatial(8)) == ((Term(Source.THREAD, 1, 8, 1),),)


def test_terms_take_arrays_too():
    layout = local(2, 1).spatial(8, 4).local(1, 2)
    numbers: Any = np.meshgrid(np.arange(32), np.arange(4), indexing="ij")
    thread, register = numbers
    rows, columns = (evaluate(terms, thread=thread, local=register) for terms in mapping.index_terms(layout))
    seen = np.zeros(layout.shape, dtype=int)
    np.add.at(seen, (rows, columns), 1)
    assert np.array_equal(seen, np.ones(layout.shape))


def operand_index(index, shape):
    leading = len(index) - len(shape)
    return tuple(0 if extent == 1 else i for i, extent in zip(index[leading:], shape, strict=True))


def needed_registers(result, operand):
    """For each register of the result, those of the operand that some thread needs, or None where it lacks one."""
    needed = {}
    for (thread, register), index in places(result).items():
        wanted = operand_index(index, operand.shape)
        if thread not in operand.get_spatial(wanted):
            return None
        needed.setdefault(register, set()).add(operand.get_local(wanted))
    return needed


def pairs(data, of):
    """A result and an operand that is broadcast to it, often related and often not."""
    result = data.draw(layouts(data.draw(extents(max_size=32, of=of))))
    shape = data.draw(broadcasts(result.shape))
    operand = ops.reduce_to(result, shape)
    match data.draw(st.sampled_from(["same", "registers", "any"])):
        case "same":
            return result, operand
        case "registers":
            modes = data.draw(st.permutations(operand.local_modes))
            return result, register_layout(shape, operand.mode_shape, operand.spatial_modes, modes)
        case _:
            return result, data.draw(layouts(shape))


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_operand_is_covered_exactly_if_every_thread_holds_what_it_needs(data):
    result, operand = pairs(data, of=(1, 2, 3, 4, 6))
    assert mapping.covers(operand, result) == (needed_registers(result, operand) is not None)


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_local_map_names_the_register_of_the_operand(data):
    result, operand = pairs(data, of=(1, 2, 3, 4, 6))
    terms = mapping.local_map(result, operand)
    if terms is None:
        return
    assert all(term.source is Source.LOCAL for term in terms)
    needed = needed_registers(result, operand)
    assert needed is not None
    for register, registers in needed.items():
        assert registers == {evaluate(terms, local=register)}


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_binary_local_map_is_missing_only_where_registers_depend_on_the_thread(data):
    result, operand = pairs(data, of=BINARY_EXTENTS)
    needed = needed_registers(result, operand)
    possible = needed is not None and all(len(registers) == 1 for registers in needed.values())
    assert (mapping.local_map(result, operand) is not None) == possible


def test_local_maps_a_person_can_check():
    layout = local(4, 2).spatial(8, 4).local(1, 2)
    assert mapping.local_map(layout, layout) == (Term(Source.LOCAL, 1, None, 1),)
    row = ops.reduce_to(layout, (1, 16))
    assert mapping.local_map(layout, row) == (Term(Source.LOCAL, 1, 4, 1),)
    column = ops.reduce_to(layout, (32, 1))
    assert mapping.local_map(layout, column) == (Term(Source.LOCAL, 4, None, 1),)
    scalar = ops.reduce_to(layout, ())
    assert mapping.local_map(layout, scalar) == ()


def test_what_another_thread_holds_is_not_available():
    assert mapping.local_map(spatial(32), spatial(4).local(8)) is None
    assert not mapping.covers(spatial(4).local(8), spatial(32))


def test_register_that_depends_on_the_thread_is_not_available():
    everything = replicated(32, num_workers=32)
    assert mapping.covers(everything, spatial(32))
    assert mapping.local_map(spatial(32), everything) is None


def test_shapes_that_do_not_broadcast_are_refused():
    with pytest.raises(LayoutOperationError, match="does not broadcast"):
        mapping.local_map(spatial(4), spatial(3))
    assert [
        s for s in itertools.product([1, 4], repeat=1) if mapping.covers(replicated(*s, num_workers=4), spatial(4))
    ] == [
        (1,),
        (4,),
    ]
