# SPDX-License-Identifier: Apache-2.0
"""Every type that a kernel can name: scalars down to one bit, vectors, pointers, and numbers of a type.

Free of hidet, torch and numpy, because annotations are evaluated in every process, also in one that finds everything
cached. NumPy is touched only inside the functions that speak of it.
"""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, overload

from tilekit.diag import LanguageError, suggest

if TYPE_CHECKING:
    import numpy as np

    NumpyValue = np.generic | np.ndarray[Any, Any]

Number = bool | int | float


class Kind(Enum):
    """What the bits of a type mean."""

    BOOL = "bool"
    INT = "int"
    UINT = "uint"
    FLOAT = "float"


class Specials(Enum):
    """Which values of a float are no numbers."""

    IEEE = "infinities and nans"
    NAN = "one nan, no infinity"
    FINITE = "none: every pattern of bits is a number"


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class DataType:
    """One scalar or vector type. There is one object per name, so types compare by identity and pickle by name."""

    name: str
    short_name: str
    kind: Kind
    nbits: int
    exponent_nbits: int = 0
    mantissa_nbits: int = 0
    specials: Specials = Specials.IEEE
    lanes: int = 1
    vector_of: DataType | None = None

    # without this, iterating would call T[0], T[1], ... for ever
    __iter__ = None

    def __repr__(self) -> str:
        return "boolean" if self.kind is Kind.BOOL else self.name

    def __str__(self) -> str:
        return self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __reduce__(self) -> tuple[object, ...]:
        return parse, (self.name,)

    def __copy__(self) -> DataType:
        return self

    def __deepcopy__(self, memo: object) -> DataType:
        return self

    @overload
    def __call__(self, value: Number | numbers.Real | Literal) -> Literal: ...

    @overload
    def __call__(self, value: object) -> Literal | CastRequest: ...

    def __call__(self, value: object) -> Literal | CastRequest:
        """`T(5)` is the number 5 of this type; of anything that is no number, the request to cast it."""
        if isinstance(value, Literal):
            return Literal(self, convert(value.value, self))
        if isinstance(value, numbers.Real):
            return self.constant(value)
        return CastRequest(self, value)

    def __invert__(self) -> PointerType:
        """`~T`: a pointer to values of this type."""
        return PointerType(self)

    def __getitem__(self, shape: object) -> TensorType:
        """`T[m, n]`: a tensor of this type; extents are numbers or expressions."""
        return TensorType(self, tuple(shape) if isinstance(shape, (tuple, list)) else (shape,))

    # ---------------------------------------------------------------- what it is

    @property
    def element(self) -> DataType:
        """The type of one lane: the type itself, unless it is a vector."""
        return self if self.vector_of is None else self.vector_of

    def is_vector(self) -> bool:
        return self.vector_of is not None

    def is_boolean(self) -> bool:
        return self.kind is Kind.BOOL

    def is_integer(self) -> bool:
        """Signed or unsigned; the truth values of `boolean` are not integers."""
        return not self.is_vector() and self.kind in (Kind.INT, Kind.UINT)

    def is_signed_integer(self) -> bool:
        return not self.is_vector() and self.kind is Kind.INT

    def is_unsigned_integer(self) -> bool:
        return not self.is_vector() and self.kind is Kind.UINT

    def is_float(self) -> bool:
        return not self.is_vector() and self.kind is Kind.FLOAT

    def is_signed(self) -> bool:
        """Whether values below zero exist."""
        return self.kind in (Kind.INT, Kind.FLOAT)

    def is_any_float16(self) -> bool:
        """`float16` or `bfloat16`."""
        return self.is_float() and self.nbits == 16

    def is_subbyte(self) -> bool:
        return self.nbits < 8

    def is_integer_subbyte(self) -> bool:
        return self.is_integer() and self.is_subbyte()

    def is_float_subbyte(self) -> bool:
        return self.is_float() and self.is_subbyte()

    @property
    def nbytes(self) -> int:
        if self.nbits % 8:
            raise LanguageError(
                "TK203",
                f"{self.name} has {self.nbits} bits, no whole number of bytes",
                help="count with nbits, for example n * dtype.nbits // 8",
            )
        return self.nbits // 8

    # ---------------------------------------------------------------- its values

    @property
    def bias(self) -> int:
        """What is added to a float's exponent before it is stored."""
        self._need(Kind.FLOAT)
        return (1 << (self.exponent_nbits - 1)) - 1

    @property
    def max_exponent(self) -> int:
        """The exponent of the largest finite value: it lies in [2^e, 2^(e+1))."""
        self._need(Kind.FLOAT)
        top = (1 << self.exponent_nbits) - 1 - self.bias
        return top - 1 if self.specials is Specials.IEEE else top

    @property
    def min_exponent(self) -> int:
        """The exponent of the smallest normal value."""
        self._need(Kind.FLOAT)
        return 1 - self.bias

    @property
    def max_value(self) -> int | float:
        """The largest finite value, exactly."""
        match self.require_scalar().kind:
            case Kind.BOOL:
                return True
            case Kind.INT:
                return (1 << (self.nbits - 1)) - 1
            case Kind.UINT:
                return (1 << self.nbits) - 1
            case Kind.FLOAT:
                # with one nan and no infinity, the pattern of all ones is the nan
                ulps = (2 << self.mantissa_nbits) - (2 if self.specials is Specials.NAN else 1)
                return math.ldexp(ulps, self.max_exponent - self.mantissa_nbits)

    @property
    def min_value(self) -> int | float:
        """The smallest value: of floats, the largest finite one below zero."""
        match self.require_scalar().kind:
            case Kind.BOOL:
                return False
            case Kind.INT:
                return -(1 << (self.nbits - 1))
            case Kind.UINT:
                return 0
            case Kind.FLOAT:
                return -self.max_value

    @property
    def highest(self) -> int | float:
        """What no value exceeds, where a minimum starts: infinity, or the largest value of a type that holds none."""
        return _overflow(self) if self.is_float() else self.max_value

    @property
    def lowest(self) -> int | float:
        """What no value is below, where a maximum starts."""
        return -_overflow(self) if self.is_float() else self.min_value

    @property
    def smallest_normal(self) -> float:
        return math.ldexp(1.0, self.min_exponent)

    @property
    def smallest_subnormal(self) -> float:
        return math.ldexp(1.0, self.min_exponent - self.mantissa_nbits)

    @property
    def eps(self) -> float:
        """The distance from 1 to the next larger value."""
        self._need(Kind.FLOAT)
        return math.ldexp(1.0, -self.mantissa_nbits)

    @property
    def zero(self) -> Literal:
        return self.constant(0)

    @property
    def one(self) -> Literal:
        return self.constant(1)

    def constant(self, value: Number | numbers.Real) -> Literal:
        """The number `value` of this type; an integer that does not fit is an error, never a wrap."""
        self.require_scalar()
        number = _as_python(value)
        if self.is_integer() and isinstance(number, float) and not math.isfinite(number):
            raise LanguageError("TK206", f"{number} is no integer and cannot be of type {self.name}")
        if self.is_integer() and not self.min_value <= int(number) <= self.max_value:
            raise LanguageError(
                "TK202",
                f"{self.name} holds {self.min_value} to {self.max_value}: {number} does not fit",
                help=f"use a wider type, or write {self.name}(int64({number})) to wrap it"
                if _fits_int64(number)
                else None,
            )
        match self.kind:
            case Kind.BOOL:
                return Literal(self, bool(number))
            case Kind.INT | Kind.UINT:
                return Literal(self, int(number))
            case Kind.FLOAT:
                return Literal(self, _to_float(number))

    def require_scalar(self) -> DataType:
        """This type, which must be no vector."""
        if self.is_vector():
            raise LanguageError("TK206", f"{self.name} is a vector of {self.lanes} and has no single number")
        return self

    def _need(self, kind: Kind) -> None:
        if self.require_scalar().kind is not kind:
            raise LanguageError("TK206", f"{self.name} is not a {kind.value} type")


@dataclass(frozen=True, slots=True)
class VoidType:
    """The type of what a raw address points to."""

    name: str = "void"
    short_name: str = "void"

    def __invert__(self) -> PointerType:
        return PointerType(self)

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class PointerType:
    """An address of values of type `base`; as a kernel parameter, `~float16` takes a tensor of exactly that type."""

    base: DataType | VoidType | PointerType

    nbits = 64
    nbytes = 8

    @property
    def name(self) -> str:
        return "void_p" if isinstance(self.base, VoidType) else f"~{self.base.name}"

    @property
    def short_name(self) -> str:
        return "void_p" if isinstance(self.base, VoidType) else f"~{self.base.short_name}"

    def is_raw(self) -> bool:
        """Whether it is an address of no known type: `void_p`."""
        return isinstance(self.base, VoidType)

    def __invert__(self) -> PointerType:
        return PointerType(self)

    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__


@dataclass(frozen=True, slots=True)
class TensorType:
    """The type of a tensor, `float16[m, n]`; extents are numbers or expressions."""

    dtype: DataType
    shape: tuple[Any, ...]

    def __invert__(self) -> PointerType:
        return PointerType(self.dtype)

    def __repr__(self) -> str:
        return f"{self.dtype!r}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True, slots=True)
class Literal:
    """A number of a type. Floats keep the value as written; `rounded` is what a machine would hold."""

    dtype: DataType
    value: Number

    @property
    def rounded(self) -> Number:
        return convert(self.value, self.dtype)

    def __repr__(self) -> str:
        if self.dtype.kind is Kind.FLOAT and not math.isfinite(self.value):
            return f"{self.dtype!r}(float('{self.value}'))"
        return f"{self.dtype!r}({self.value!r})"

    def __bool__(self) -> bool:
        return bool(self.rounded)

    def __int__(self) -> int:
        return int(self.rounded)

    def __float__(self) -> float:
        return float(self.rounded)


@dataclass(frozen=True, slots=True)
class CastRequest:
    """`T(e)` for an `e` that only the transpiler understands."""

    dtype: DataType
    value: Any


# -------------------------------------------------------------------------------------------------------- the types


def _int(nbits: int, suffix: str = "") -> DataType:
    return DataType(f"int{nbits}{suffix}", f"i{nbits}", Kind.INT, nbits)


def _uint(nbits: int, suffix: str = "") -> DataType:
    return DataType(f"uint{nbits}{suffix}", f"u{nbits}", Kind.UINT, nbits)


def _small(exponent_nbits: int, mantissa_nbits: int, specials: Specials = Specials.FINITE) -> DataType:
    nbits = 1 + exponent_nbits + mantissa_nbits
    form = f"e{exponent_nbits}m{mantissa_nbits}"
    return DataType(
        f"float{nbits}_{form}", f"f{nbits}{form}", Kind.FLOAT, nbits, exponent_nbits, mantissa_nbits, specials
    )


def _vector(element: DataType, lanes: int) -> DataType:
    return DataType(
        f"{element.name}x{lanes}",
        f"{element.short_name}x{lanes}",
        element.kind,
        element.nbits * lanes,
        element.exponent_nbits,
        element.mantissa_nbits,
        element.specials,
        lanes,
        element,
    )


void = VoidType()
void_p = PointerType(void)
# a tensor of any type, or an integer address: what `void_p` takes too
TensorPointer = void_p

boolean = DataType("bool", "bool", Kind.BOOL, 8)

int8 = i8 = _int(8)
int16 = i16 = _int(16)
int32 = i32 = _int(32)
int64 = i64 = _int(64)
uint8 = u8 = _uint(8)
uint16 = u16 = _uint(16)
uint32 = u32 = _uint(32)
uint64 = u64 = _uint(64)

int1b = i1 = _int(1, "b")
int2b = i2 = _int(2, "b")
int3b = i3 = _int(3, "b")
int4b = i4 = _int(4, "b")
int5b = i5 = _int(5, "b")
int6b = i6 = _int(6, "b")
int7b = i7 = _int(7, "b")
uint1b = u1 = _uint(1, "b")
uint2b = u2 = _uint(2, "b")
uint3b = u3 = _uint(3, "b")
uint4b = u4 = _uint(4, "b")
uint5b = u5 = _uint(5, "b")
uint6b = u6 = _uint(6, "b")
uint7b = u7 = _uint(7, "b")

float16 = f16 = DataType("float16", "f16", Kind.FLOAT, 16, 5, 10)
bfloat16 = bf16 = DataType("bfloat16", "bf16", Kind.FLOAT, 16, 8, 7)
float32 = f32 = DataType("float32", "f32", Kind.FLOAT, 32, 8, 23)
float64 = f64 = DataType("float64", "f64", Kind.FLOAT, 64, 11, 52)
# stored in 32 bits, of which tensor cores read 19
tfloat32 = tf32 = DataType("tfloat32", "tf32", Kind.FLOAT, 32, 8, 10)

float8_e4m3 = f8e4m3 = _small(4, 3, Specials.NAN)
float8_e5m2 = f8e5m2 = _small(5, 2, Specials.IEEE)
float7_e5m1 = f7e5m1 = _small(5, 1)
float7_e4m2 = f7e4m2 = _small(4, 2)
float7_e3m3 = f7e3m3 = _small(3, 3)
float7_e2m4 = f7e2m4 = _small(2, 4)
float6_e4m1 = f6e4m1 = _small(4, 1)
float6_e3m2 = f6e3m2 = _small(3, 2)
float6_e2m3 = f6e2m3 = _small(2, 3)
float5_e3m1 = f5e3m1 = _small(3, 1)
float5_e2m2 = f5e2m2 = _small(2, 2)
float5_e1m3 = f5e1m3 = _small(1, 3)
float4_e2m1 = f4e2m1 = _small(2, 1)
float4_e1m2 = f4e1m2 = _small(1, 2)
float3_e1m1 = f3e1m1 = _small(1, 1)

float16x1 = f16x1 = _vector(float16, 1)
float16x2 = f16x2 = _vector(float16, 2)
float16x4 = f16x4 = _vector(float16, 4)
float16x8 = f16x8 = _vector(float16, 8)
float32x1 = f32x1 = _vector(float32, 1)
float32x2 = f32x2 = _vector(float32, 2)
float32x4 = f32x4 = _vector(float32, 4)
float32x8 = f32x8 = _vector(float32, 8)
bfloat16x2 = bf16x2 = _vector(bfloat16, 2)
int8x4 = i8x4 = _vector(int8, 4)
uint8x4 = u8x4 = _vector(uint8, 4)
int4bx2 = i4x2 = _vector(int4b, 2)
int4bx8 = i4x8 = _vector(int4b, 8)
uint4bx2 = u4x2 = _vector(uint4b, 2)
uint4bx8 = u4x8 = _vector(uint4b, 8)
uint32x1 = u32x1 = _vector(uint32, 1)
uint32x2 = u32x2 = _vector(uint32, 2)
uint32x4 = u32x4 = _vector(uint32, 4)

# ints, floats and vectors in the order they are written above
ALL: tuple[DataType, ...] = tuple(
    dict.fromkeys(each for each in list(globals().values()) if isinstance(each, DataType))
)
SCALARS: tuple[DataType, ...] = tuple(dtype for dtype in ALL if not dtype.is_vector())

_BY_NAME: dict[str, DataType] = {dtype.name: dtype for dtype in ALL} | {dtype.short_name: dtype for dtype in ALL}
_BY_NAME["boolean"] = boolean


def parse(name: str) -> DataType:
    """The type called `name`, long or short: `parse("f16") is float16`."""
    found = _BY_NAME.get(name)
    if found is None:
        near = suggest(name, _BY_NAME)
        raise LanguageError("TK201", f"there is no type {name!r}", help=f"did you mean {near}?" if near else None)
    return found


def parse_type(text: str) -> DataType | PointerType:
    """A scalar, vector or pointer type from its text: `f16`, `~float32`, `void_p`."""
    if text == "void_p":
        return void_p
    return PointerType(parse_type(text[1:])) if text.startswith("~") else parse(text)


def vector(element: DataType, lanes: int) -> DataType:
    """The type of `lanes` values of `element` side by side."""
    return parse(f"{element.name}x{lanes}")


# ------------------------------------------------------------------------------------------------------ conversion


def convert(value: Number, dtype: DataType) -> Number:
    """A Python number as a value of `dtype` would hold it: the meaning of a cast, for one number.

    Integers wrap at their width. A float becomes an integer by cutting its fraction, held inside the type's range, and
    a nan becomes 0, as the GPU's conversions do. A float is rounded to the nearest, ties to even (`tfloat32`: ties away
    from zero, as `cvt.rna` does); past the largest value it becomes infinite where the type has 16 bits or more, else
    the largest, as `cvt.satfinite` does. Types with no nan hold their largest value in its place.
    """
    match dtype.require_scalar().kind:
        case Kind.BOOL:
            return bool(value)
        case Kind.INT | Kind.UINT:
            return _wrap(value, dtype) if isinstance(value, int) else _truncate(value, dtype)
        case Kind.FLOAT:
            return _round(value, dtype)


def _wrap(value: int, dtype: DataType) -> int:
    low = int(value) & ((1 << dtype.nbits) - 1)
    return low - (1 << dtype.nbits) if low > dtype.max_value else low


def _truncate(value: float, dtype: DataType) -> int:
    if math.isnan(value):
        return 0
    whole = value if math.isinf(value) else math.trunc(value)
    return int(min(max(whole, dtype.min_value), dtype.max_value))


def _round(value: Number, dtype: DataType) -> float:
    if isinstance(value, float) and math.isnan(value):
        return dtype.max_value if dtype.specials is Specials.FINITE else value
    if isinstance(value, float) and math.isinf(value):
        return math.copysign(_overflow(dtype), value)
    if value == 0:
        return float(value)
    top, bottom = abs(value).as_integer_ratio()
    # 2^exponent <= |value| < 2^(exponent + 1), for the denominator is a power of two
    exponent = top.bit_length() - bottom.bit_length()
    ulp = max(exponent, dtype.min_exponent) - dtype.mantissa_nbits
    count = _shift_right_rounded(top, ulp + bottom.bit_length() - 1, ties_to_even=dtype is not tfloat32)
    try:
        rounded = math.ldexp(count, ulp)
    except OverflowError:
        rounded = math.inf
    held = rounded if rounded <= dtype.max_value else _overflow(dtype)
    return -held if value < 0 else held


def _shift_right_rounded(value: int, shift: int, ties_to_even: bool) -> int:
    """`value / 2^shift` to the nearest integer."""
    if shift <= 0:
        return value << -shift
    half = 1 << (shift - 1)
    quotient = (value + half) >> shift
    if ties_to_even and value & ((half << 1) - 1) == half:
        quotient &= ~1
    return quotient


def _overflow(dtype: DataType) -> float:
    """What stands for a value past the largest one."""
    return math.inf if dtype.nbits >= 16 else dtype.max_value


# ----------------------------------------------------------------------------------------------------- NumPy, torch

# ml_dtypes' own names; every other small type lives in a NumPy type that holds all its values
_ML_DTYPES = {
    "bfloat16": "bfloat16",
    "float8_e4m3": "float8_e4m3fn",
    "float8_e5m2": "float8_e5m2",
    "float6_e3m2": "float6_e3m2fn",
    "float6_e2m3": "float6_e2m3fn",
    "float4_e2m1": "float4_e2m1fn",
    "int1b": "int1",
    "int2b": "int2",
    "int4b": "int4",
    "uint1b": "uint1",
    "uint2b": "uint2",
    "uint4b": "uint4",
}


def numpy_dtype(dtype: DataType) -> np.dtype[Any]:
    """The NumPy type of an array of `dtype`, one element per item.

    Where neither NumPy nor ml_dtypes has the type, one that holds all its values: `int8` or `uint8` for the odd
    integers, `float32` for the odd floats and for `tfloat32`. `quantize` keeps such arrays to the type's values.
    """
    import numpy as np

    dtype.require_scalar()
    if dtype.name in _ML_DTYPES:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, _ML_DTYPES[dtype.name]))
    match dtype.kind:
        case Kind.BOOL:
            return np.dtype(np.bool_)
        case Kind.INT | Kind.UINT:
            small = "int8" if dtype.kind is Kind.INT else "uint8"
            return np.dtype(small if dtype.is_subbyte() else dtype.name)
        case Kind.FLOAT:
            return np.dtype(dtype.name if dtype in (float16, float32, float64) else "float32")


def from_numpy(dtype: np.dtype[Any] | type[Any] | str) -> DataType:
    """Our type for a NumPy or ml_dtypes type."""
    import numpy as np

    name = np.dtype(dtype).name
    ours = next((key for key, theirs in _ML_DTYPES.items() if theirs == name), name)
    found = _BY_NAME.get(ours)
    if found is None or found.is_vector():
        raise LanguageError("TK205", f"NumPy's type {name} has no counterpart here")
    return found


def quantize(value: Number | NumpyValue, dtype: DataType) -> Any:
    """`value` with every number as `dtype` would hold it, by the rules of `convert`; the shape stays.

    A Python number stays one; a NumPy scalar or array comes back with `numpy_dtype(dtype)`.
    """
    if isinstance(value, (bool, int, float)) and type(value) in (bool, int, float):
        return convert(value, dtype)
    import numpy as np

    source = np.asarray(value)
    container = numpy_dtype(dtype)
    with np.errstate(all="ignore"):
        match dtype.kind:
            case Kind.BOOL:
                out = source != 0
            case Kind.INT | Kind.UINT:
                out = _wrap_array(source, dtype) if _holds_integers(source) else _truncate_array(source, dtype)
            case Kind.FLOAT:
                out = _round_array(source, dtype)
        return out.astype(container)[()]


def _holds_integers(source: np.ndarray[Any, Any]) -> bool:
    # the integers of ml_dtypes are of kind V to NumPy, as its floats are
    return source.dtype.kind in "biu" or (source.dtype.kind == "V" and "int" in source.dtype.name)


def _wrap_array(source: np.ndarray[Any, Any], dtype: DataType) -> np.ndarray[Any, Any]:
    import numpy as np

    if not dtype.is_subbyte():
        return source.astype(numpy_dtype(dtype))
    low = source.astype(np.int64) & ((1 << dtype.nbits) - 1)
    return np.where(low > dtype.max_value, low - (1 << dtype.nbits), low)


def _truncate_array(source: np.ndarray[Any, Any], dtype: DataType) -> np.ndarray[Any, Any]:
    import numpy as np

    whole = np.trunc(np.nan_to_num(source.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf))
    wide = np.uint64 if dtype.kind is Kind.UINT else np.int64
    # the largest 64-bit integers are no doubles: what reaches past them is set apart from what is converted
    inside = np.where((whole >= dtype.min_value) & (whole < dtype.max_value), whole, 0.0).astype(wide)
    above = np.where(whole >= dtype.max_value, wide(dtype.max_value), inside)
    return np.where(whole < dtype.min_value, wide(dtype.min_value), above)


def _round_array(source: np.ndarray[Any, Any], dtype: DataType) -> np.ndarray[Any, Any]:
    import numpy as np

    if dtype in (float16, float32, float64) and source.dtype.kind in "biuf":
        return source.astype(dtype.name)
    # 64-bit integers need a longer mantissa than a double has
    x = source.astype(np.longdouble if source.dtype.kind in "iu" and source.dtype.itemsize == 8 else np.float64)
    if dtype in (float32, float64):
        return x
    _, exponent = np.frexp(x)
    ulp = np.maximum(exponent - 1, dtype.min_exponent) - dtype.mantissa_nbits
    steps = np.ldexp(x, -ulp)
    count = np.rint(steps) if dtype is not tfloat32 else np.trunc(steps + np.copysign(0.5, steps))
    y = np.where(np.isfinite(x), np.ldexp(count, ulp), x)
    y = np.where(np.abs(y) > dtype.max_value, np.copysign(_overflow(dtype), y), y)
    return np.where(np.isnan(y), dtype.max_value, y) if dtype.specials is Specials.FINITE else y


_TORCH = {"bool": "bool", "float8_e4m3": "float8_e4m3fn", "float8_e5m2": "float8_e5m2", "tfloat32": "float32"}
_TORCH |= {dtype.name: dtype.name for dtype in (int8, int16, int32, int64, uint8, uint16, uint32, uint64)}
_TORCH |= {dtype.name: dtype.name for dtype in (float16, bfloat16, float32, float64)}
_FROM_TORCH = {theirs: parse(ours) for ours, theirs in _TORCH.items() if ours != "tfloat32"}


def torch_name(dtype: DataType) -> str:
    """The name that torch has for a type: `float8_e4m3fn`."""
    found = _TORCH.get(dtype.name)
    if found is None:
        raise LanguageError("TK205", f"torch has no type for {dtype.name}")
    return found


def from_torch(dtype: object) -> DataType:
    """Our type for a torch type, `torch.float16`, or for its name; imports no torch."""
    name = str(dtype).removeprefix("torch.")
    found = _FROM_TORCH.get(name)
    if found is None:
        raise LanguageError("TK205", f"torch's type {name} has no counterpart here")
    return found


def _as_python(value: Number | numbers.Real) -> Number:
    if isinstance(value, (bool, int, float)):
        return value if type(value) in (bool, int, float) else float(value) if isinstance(value, float) else int(value)
    return int(value) if isinstance(value, numbers.Integral) else float(value)


def _to_float(number: Number) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _fits_int64(number: Number) -> bool:
    return -(1 << 63) <= number < 1 << 63
