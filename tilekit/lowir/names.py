# SPDX-License-Identifier: Apache-2.0
"""Names of variables in generated code: the user's, made legal C++ and unlike every other name of the function."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable
from contextlib import contextmanager

from tilekit.lowir import scalar
from tilekit.lowir.nodes import Var

_KEYWORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class co_await
co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype default delete do
double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable namespace
new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires return
short signed sizeof static static_assert static_cast struct switch template this thread_local throw true try typedef
typeid typename typeof union unsigned using virtual void volatile wchar_t while xor xor_eq
"""

# types, variables and macros of CUDA, of our headers, and of the compilers
_TAKEN = """
tk half half2 nv_bfloat16 nv_bfloat162 dim3 size_t threadIdx blockIdx blockDim gridDim warpSize printf assert NULL
int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t uintptr_t intptr_t linux unix i386 errno
memcpy memset main dynamic_shared_memory INFINITY NAN EOF signbit isnan isinf isfinite fpclassify tk_current
"""

RESERVED = frozenset((_KEYWORDS + _TAKEN).split())

# families of macros: those of our headers, and the limits that come with the fixed-width integers
_MACROS = re.compile(r"TK_[A-Z]+|(U?INT|SIZE|PTRDIFF|W?CHAR|WINT|SIG_ATOMIC)\w*_(MIN|MAX|WIDTH)")

# variables that the machine has: they are written with a cast, because CUDA's are unsigned and ours are int32
SPECIAL = frozenset(f"{base}.{axis}" for base in ("threadIdx", "blockIdx", "gridDim") for axis in "xyz")


class Namer:
    """Gives each variable of a function one name: what it should be called, unless that is gone where it is visible."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = {*taken}
        self._names: dict[Var, str] = {}

    def __call__(self, v: Var) -> str:
        if v.name is not None:
            return v.name
        if v not in self._names:
            self._names[v] = self._free(legal(scalar.name_hint(v)))
        return self._names[v]

    @contextmanager
    def scope(self) -> Generator[None]:
        """Names that are given in this block are free again after it."""
        outer = self._taken.copy()
        try:
            yield
        finally:
            self._taken = outer

    def _free(self, wanted: str) -> str:
        name, count = wanted, 0
        while name in self._taken or is_reserved(name):
            count += 1
            name = f"{wanted}_{count}"
        self._taken.add(name)
        return name


def is_reserved(name: str) -> bool:
    """Whether an identifier means something to the compiler or the headers already."""
    return name in RESERVED or _MACROS.fullmatch(name) is not None


def legal(name: str) -> str:
    """The nearest C++ identifier: other letters by their number, none of the names that belong to the compiler."""
    spelled = "".join(c if c.isascii() else f"u{ord(c):x}" for c in name)
    spelled = re.sub(r"\W", "_", spelled)
    spelled = re.sub(r"__+", "_", spelled)
    if spelled[:1].isdigit() or re.match(r"_([A-Z]|$)", spelled):
        spelled = f"v{spelled}"
    return spelled or "v"
