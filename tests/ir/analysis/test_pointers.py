# SPDX-License-Identifier: Apache-2.0
from tilekit.ir.analysis import pointers
from tilekit.ir.instructions.generic import StoreGlobalGenericInst
from tilekit.ir.text import parser
from tilekit.ir.tools import collect
from tilekit.lowir import scalar


def origins_by_name(text: str) -> dict[str, set[str]]:
    func = parser.parse_program(text).function
    found = pointers.origins(func)
    return {scalar.name_hint(v): {scalar.name_hint(param) for param in params} for v, params in found.items()}


def test_a_pointer_variable_comes_from_every_parameter_it_was_made_from():
    found = origins_by_name("""
@kernel(grid=[i32(1), i32(1), i32(1)], warps=1)
def f(n: i32, p: ~f32, q: ~f32, r: ~f32):
    second: Let[~f32] = q + n
    at: ~f32 = p
    other: ~f32 = r
    for k in range(n):
        at = at + i32(32)
        if k == n:
            at = second
""")
    assert found == {"p": {"p"}, "q": {"q"}, "r": {"r"}, "second": {"q"}, "at": {"p", "q"}, "other": {"r"}}


def test_two_pointers_that_take_turns_come_from_both_parameters():
    found = origins_by_name("""
@kernel(grid=[i32(1), i32(1), i32(1)], warps=1)
def f(n: i32, p: ~f32, q: ~f32):
    here: ~f32 = p
    there: ~f32 = q
    for k in range(n):
        swap: Let[~f32] = here
        here = there
        there = swap
""")
    assert found["here"] == found["there"] == {"p", "q"}


def test_a_pointer_made_of_a_number_may_point_anywhere():
    func = parser.parse_program("""
@kernel(grid=[i32(1), i32(1), i32(1)], warps=1)
def f(address: i64, p: ~f32, q: ~f32):
    a: f32[32] = register_tensor(init=f32(0.0))
    store_global_generic(a, ptr=cast(address, '~f32'), axes=[i], offset=i64(i))
""").function
    (store,) = collect(func, StoreGlobalGenericInst)
    assert pointers.sources_of(store.ptr, pointers.origins(func)) == set(func.params[1:])


def test_the_address_of_an_element_comes_from_every_pointer_that_its_tensor_is_made_at():
    found = origins_by_name("""
@kernel(grid=[i32(1), i32(1), i32(1)], warps=1)
def f(n: i32, p: ~f32, q: ~f32, r: ~f32):
    g: Global[f32[n]] = global_view(ptr=p)
    if n == i32(3):
        g = global_view(ptr=q)
    here: Item[~f32] = ~g[n]
    next: Let[~f32] = here + n
    h: Global[f32[n]] = global_view(ptr=next)
    there: Item[~f32] = ~h[i32(1)]
""")
    assert found["here"] == found["next"] == found["there"] == {"p", "q"}
    assert found["r"] == {"r"}


def test_workspaces_and_shared_memory_are_no_parameters():
    found = origins_by_name("""
@kernel(grid=[i32(1), i32(1), i32(1)], warps=1)
def f(n: i32, p: ~f32):
    w: Global[f32[n]] = global_tensor(requires_clean=False)
    lent: Item[~f32] = ~w[n]
    s: Shared[f32[4]] = shared_tensor()
    near: Item[~f32] = ~s[n]
    far: Let[~f32] = near + n
""")
    assert found == {"p": {"p"}, "lent": set(), "near": set(), "far": set()}
