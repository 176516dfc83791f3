# SPDX-License-Identifier: Apache-2.0
import copy
import itertools
import math
import pickle
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tilekit import dtypes
from tilekit.diag import LanguageError

FLOATS = [dtype for dtype in dtypes.SCALARS if dtype.is_float()]
INTEGERS = [dtype for dtype in dtypes.SCALARS if dtype.is_integer()]
ODD_FLOATS = {
    "tfloat32": 3.4011621342146535e38,
    "float7_e5m1": 98304.0,
    "float7_e4m2": 448.0,
    "float7_e3m3": 30.0,
    "float7_e2m4": 7.75,
    "float6_e4m1": 384.0,
    "float5_e3m1": 24.0,
    "float5_e2m2": 7.0,
    "float5_e1m3": 3.75,
    "float4_e1m2": 3.5,
    "float3_e1m1": 3.0,
}
EVERY_SCALAR = pytest.mark.parametrize("dtype", dtypes.SCALARS, ids=repr)


# ------------------------------------------------------------------------------------------------------- identity


def test_a_type_prints_as_the_name_it_is_imported_by():
    for dtype in dtypes.ALL:
        assert getattr(dtypes, repr(dtype)) is dtype
        assert isinstance(dtype, dtypes.DataType)


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=repr)
def test_there_is_one_object_per_type(dtype):
    assert pickle.loads(pickle.dumps(dtype)) is dtype
    assert copy.deepcopy(dtype) is dtype
    assert dtypes.parse(dtype.name) is dtypes.parse(dtype.short_name) is dtype


def test_names_are_distinct():
    names = [name for dtype in dtypes.ALL for name in {dtype.name, dtype.short_name}]
    assert len(names) == len(set(names))


def test_every_name_of_the_language_is_there():
    names = """boolean int8 int16 int32 int64 uint8 uint16 uint32 uint64 int1b int2b int3b int4b int5b int6b int7b
    uint1b uint2b uint3b uint4b uint5b uint6b uint7b float16 bfloat16 float32 float64 tfloat32 float8_e4m3 float8_e5m2
    float7_e5m1 float7_e4m2 float7_e3m3 float7_e2m4 float6_e4m1 float6_e3m2 float6_e2m3 float5_e3m1 float5_e2m2
    float4_e2m1 float3_e1m1 f16x1 f16x2 f16x4 f16x8 f32x1 f32x2 f32x4 f32x8 bf16x2 i8x4 u8x4 i4x2 i4x8 u4x2 u4x8 u32x1
    u32x2 u32x4 f16 f32 f64 bf16 tf32 i8 i16 i32 i64 u8 u16 u32 u64 i1 i2 i3 i4 i5 i6 i7 u1 u2 u3 u4 u5 u6 u7 f8e4m3
    f8e5m2 f7e5m1 f7e4m2 f7e3m3 f7e2m4 f6e4m1 f6e3m2 f6e2m3 f5e3m1 f5e2m2 f4e2m1 f3e1m1"""
    for name in names.split():
        assert dtypes.parse(name) is getattr(dtypes, name)


def test_a_type_cannot_be_changed_or_iterated():
    with pytest.raises(AttributeError):
        setattr(dtypes.float32, "nbits", 64)  # noqa: B010
    with pytest.raises(TypeError):
        iter(dtypes.float32)


def test_importing_the_types_imports_no_guest():
    code = (
        "import sys, tilekit.dtypes; print([m for m in ('numpy', 'ml_dtypes', 'torch', 'hidet') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


# --------------------------------------------------------------------------------------------------------- limits


@pytest.mark.parametrize("dtype", INTEGERS, ids=repr)
def test_an_integer_type_spans_its_bits(dtype):
    assert dtype.max_value - dtype.min_value == 2**dtype.nbits - 1
    assert (dtype.min_value < 0) == dtype.is_signed()


def test_the_largest_small_integers_are_not_off_by_one():
    assert (dtypes.uint4b.max_value, dtypes.uint3b.max_value, dtypes.uint2b.max_value) == (15, 7, 3)


@pytest.mark.parametrize("dtype", [dtype for dtype in FLOATS if dtype.name not in ODD_FLOATS], ids=repr)
def test_float_limits_are_those_of_numpy_and_ml_dtypes(dtype):
    info = ml_dtypes.finfo(dtypes.numpy_dtype(dtype))
    assert dtype.max_value == float(info.max)
    assert dtype.min_value == float(info.min)
    assert dtype.smallest_normal == float(info.smallest_normal)
    assert dtype.smallest_subnormal == float(info.smallest_subnormal)
    assert dtype.eps == float(info.eps)


def test_floats_that_numpy_lacks_have_their_limits_too():
    assert {name: dtypes.parse(name).max_value for name in ODD_FLOATS} == ODD_FLOATS


@EVERY_SCALAR
def test_a_maximum_can_start_from_the_lowest_value(dtype):
    assert dtypes.convert(dtype.lowest, dtype) == dtype.lowest <= dtype.min_value
    assert dtypes.convert(dtype.highest, dtype) == dtype.highest >= dtype.max_value
    assert math.isinf(dtype.highest) == (dtype.is_float() and dtype.nbits >= 16)


def _decode(bits, dtype):
    """The number that a pattern of bits means in a float type, by the definition of such types."""
    exponent = bits >> dtype.mantissa_nbits & ((1 << dtype.exponent_nbits) - 1)
    fraction = bits & ((1 << dtype.mantissa_nbits) - 1)
    sign = -1.0 if bits >> (dtype.nbits - 1) else 1.0
    bias = 2 ** (dtype.exponent_nbits - 1) - 1
    if exponent == 0:
        return sign * fraction * 2.0 ** (1 - bias - dtype.mantissa_nbits)
    return sign * (1 + fraction * 2.0**-dtype.mantissa_nbits) * 2.0 ** (exponent - bias)


@pytest.mark.parametrize("dtype", [d for d in FLOATS if d.specials is dtypes.Specials.FINITE], ids=repr)
def test_every_value_of_a_small_float_stays_and_every_other_goes_to_the_nearest(dtype):
    values = sorted({_decode(bits, dtype) for bits in range(2**dtype.nbits)})
    assert [dtypes.convert(value, dtype) for value in values] == values
    assert (values[0], values[-1]) == (dtype.min_value, dtype.max_value)
    for low, high in itertools.pairwise(values):
        middle = (low + high) / 2
        assert dtypes.convert(math.nextafter(middle, low), dtype) == low
        assert dtypes.convert(math.nextafter(middle, high), dtype) == high
        # of the two, the one whose last bit is 0
        even = low if round(low / 2.0 ** _ulp_exponent(low, high)) % 2 == 0 else high
        assert dtypes.convert(middle, dtype) == even


def _ulp_exponent(low, high):
    return math.frexp(high - low)[1] - 1


# ---------------------------------------------------------------------------------------------- what kind of type


def test_families():
    assert dtypes.int4b.is_integer() and dtypes.int4b.is_signed() and dtypes.int4b.is_integer_subbyte()
    assert dtypes.uint8.is_unsigned_integer() and not dtypes.uint8.is_signed()
    assert not dtypes.boolean.is_integer() and not dtypes.boolean.is_float()
    assert [d for d in dtypes.ALL if d.is_any_float16()] == [dtypes.float16, dtypes.bfloat16]
    assert dtypes.float32x4.is_vector() and not dtypes.float32x4.is_float()
    assert (dtypes.float32x4.element, dtypes.float32x4.lanes, dtypes.float32x4.nbytes) == (dtypes.float32, 4, 16)
    assert dtypes.int4bx8.nbytes == 4
    assert dtypes.vector(dtypes.float16, 2) is dtypes.f16x2
    assert dtypes.float16.element is dtypes.float16


def test_part_of_a_byte_has_no_size_in_bytes():
    with pytest.raises(LanguageError) as caught:
        _ = dtypes.int4b.nbytes
    assert str(caught.value) == (
        "TK203: int4b has 4 bits, no whole number of bytes\n  help: count with nbits, for example n * dtype.nbits // 8"
    )


def test_pointers_and_tensors():
    assert repr(~dtypes.float32) == "~float32"
    assert ~dtypes.float32 == dtypes.PointerType(dtypes.float32) != ~dtypes.float16
    assert repr(~~dtypes.float32) == "~~float32"
    assert (repr(dtypes.void_p), dtypes.void_p.is_raw(), dtypes.void_p.nbytes) == ("void_p", True, 8)
    assert dtypes.TensorPointer is dtypes.void_p
    assert dtypes.float16[4, 8] == dtypes.TensorType(dtypes.float16, (4, 8))
    assert dtypes.float16[4].shape == (4,)
    assert repr(dtypes.float16[4, 8]) == "float16[4, 8]"
    # unary ~ binds more weakly than a subscript
    assert ~dtypes.float16[4, 8] == ~dtypes.float16
    for pointer in (~dtypes.float32, ~~dtypes.int8, dtypes.void_p, dtypes.float16[2, 3]):
        assert pickle.loads(pickle.dumps(pointer)) == pointer


@pytest.mark.parametrize("text", ["float32", "~float32", "~~int8", "void_p", "~f16"])
def test_the_text_of_a_parameter_type_parses_back(text):
    parsed = dtypes.parse_type(text)
    assert dtypes.parse_type(parsed.name) == dtypes.parse_type(parsed.short_name) == parsed


def test_an_unknown_type_is_answered_with_the_nearest_one():
    with pytest.raises(LanguageError) as caught:
        dtypes.parse("flaot32")
    assert str(caught.value) == "TK201: there is no type 'flaot32'\n  help: did you mean float32?"


# ------------------------------------------------------------------------------------------------ numbers of a type


def test_calling_a_type_with_a_number_makes_a_literal():
    assert dtypes.int32(5) == dtypes.Literal(dtypes.int32, 5)
    assert repr(dtypes.int32(5)) == "int32(5)"
    assert repr(dtypes.float32(5)) == "float32(5.0)"
    assert repr(dtypes.boolean(2)) == "boolean(True)"
    assert repr(dtypes.float32(-math.inf)) == "float32(float('-inf'))"
    assert dtypes.int32(2.9) == dtypes.int32(2)
    assert dtypes.int8(np.int64(-128)).value == -128
    assert type(dtypes.int8(True).value) is int
    assert type(dtypes.float32(np.float32(0.1)).value) is float
    assert (dtypes.uint8.zero, dtypes.float16.one) == (dtypes.uint8(0), dtypes.float16(1.0))


def test_a_literal_keeps_the_number_as_written_and_knows_what_a_machine_holds():
    tenth = dtypes.float16(0.1)
    assert tenth.value == 0.1
    assert tenth.rounded == float(np.float16(0.1)) == float(tenth)


def test_calling_a_type_with_anything_else_asks_for_a_cast():
    value = object()
    assert dtypes.int32(value) == dtypes.CastRequest(dtypes.int32, value)


def test_a_literal_of_another_type_is_cast():
    assert dtypes.uint8(dtypes.int32(300)) == dtypes.uint8(44)
    assert dtypes.int32(dtypes.float32(-2.7)) == dtypes.int32(-2)


@pytest.mark.parametrize("dtype", INTEGERS, ids=repr)
def test_a_number_outside_the_range_is_an_error(dtype):
    assert int(dtype(dtype.max_value)) == dtype.max_value
    assert int(dtype(dtype.min_value)) == dtype.min_value
    for outside in (dtype.max_value + 1, dtype.min_value - 1):
        with pytest.raises(LanguageError, match=rf"TK202: {dtype.name} holds .*: {outside} does not fit"):
            dtype(outside)


def test_the_error_of_a_number_outside_the_range():
    with pytest.raises(LanguageError) as caught:
        dtypes.int8(300)
    assert str(caught.value) == (
        "TK202: int8 holds -128 to 127: 300 does not fit\n"
        "  help: use a wider type, or write int8(int64(300)) to wrap it"
    )
    with pytest.raises(LanguageError, match="TK206: nan is no integer and cannot be of type int32"):
        dtypes.int32(math.nan)
    with pytest.raises(LanguageError, match="TK206: float32x2 is a vector of 2 and has no single number"):
        dtypes.f32x2(1)


# ------------------------------------------------------------------------------------------------------ conversion


@given(st.integers(), st.sampled_from(INTEGERS))
def test_integers_wrap_at_their_width(value, dtype):
    wrapped = dtypes.convert(value, dtype)
    assert dtype.min_value <= wrapped <= dtype.max_value
    assert (wrapped - value) % 2**dtype.nbits == 0


@given(st.floats(), st.sampled_from(INTEGERS))
def test_floats_become_integers_as_the_gpu_does_it(value, dtype):
    whole = dtypes.convert(value, dtype)
    if math.isnan(value):
        assert whole == 0
    elif dtype.min_value <= value <= dtype.max_value:
        assert whole == math.trunc(value)
    else:
        assert whole in (dtype.min_value, dtype.max_value)


@given(st.floats(), st.sampled_from([dtypes.float16, dtypes.float32, dtypes.bfloat16]))
def test_rounding_a_double_agrees_with_numpy(value, dtype):
    with np.errstate(all="ignore"):
        # through float32 first, as ml_dtypes does it, so that both round the same number once
        start = float(np.float32(value)) if dtype is dtypes.bfloat16 else value
        expected = float(np.float64(start).astype(np.float32).astype(dtypes.numpy_dtype(dtype)))
        if dtype is not dtypes.bfloat16:
            expected = float(np.float64(start).astype(dtypes.numpy_dtype(dtype)))
    _same(dtypes.convert(start, dtype), expected)


def test_what_is_past_the_largest_value():
    assert dtypes.convert(65520.0, dtypes.float16) == math.inf
    assert dtypes.convert(65519.99, dtypes.float16) == 65504.0
    assert dtypes.convert(-1e9, dtypes.float8_e4m3) == -448.0
    assert dtypes.convert(math.inf, dtypes.float8_e5m2) == 57344.0
    assert dtypes.convert(math.inf, dtypes.float4_e2m1) == 6.0
    assert dtypes.convert(10**400, dtypes.float64) == math.inf
    assert math.isnan(dtypes.convert(math.nan, dtypes.float8_e4m3))
    assert dtypes.convert(math.nan, dtypes.float6_e3m2) == 28.0


def test_tf32_rounds_ties_away_from_zero():
    assert dtypes.convert(1 + 2**-11, dtypes.tfloat32) == 1 + 2**-10
    assert dtypes.convert(1 + 2**-11, dtypes.float16) == 1.0
    assert dtypes.quantize(np.float32(-1 - 2**-11), dtypes.tfloat32) == -1 - 2**-10


@EVERY_SCALAR
def test_arrays_are_quantized_as_single_numbers_are(dtype):
    rng = np.random.default_rng()
    reals = rng.standard_normal(200) * 10.0 ** rng.integers(-9, 9, 200)
    edges = [0.0, -0.0, math.inf, -math.inf, math.nan, 464.0, 480.0, 65520.0, 2.0**63, 2.0**64, -(2.0**63), -1.0, 0.5]
    for source in (np.concatenate([reals, edges]), rng.integers(-(2**63), 2**63 - 1, 200) >> rng.integers(0, 63, 200)):
        result = dtypes.quantize(source, dtype)
        assert result.dtype == dtypes.numpy_dtype(dtype)
        assert result.shape == source.shape
        for value, held in zip(source.tolist(), result, strict=True):
            expected = dtypes.convert(value, dtype)
            _same(int(held) if isinstance(expected, int) else float(held), expected)


@EVERY_SCALAR
def test_quantizing_twice_is_quantizing_once(dtype):
    once = dtypes.quantize(np.random.default_rng().standard_normal((3, 50)) * 20, dtype)
    again = dtypes.quantize(once, dtype)
    assert again.dtype == once.dtype
    assert np.array_equal(again, once)


def test_small_types_of_ml_dtypes_convert_among_each_other():
    values = np.array([-3, -1, 0, 2, 3], dtypes.numpy_dtype(dtypes.int4b))
    assert dtypes.quantize(values, dtypes.uint2b).tolist() == [1, 3, 0, 2, 3]
    assert dtypes.quantize(values, dtypes.float8_e4m3).astype(float).tolist() == [-3, -1, 0, 2, 3]
    assert dtypes.quantize(np.array([-2.5, 1.75]).astype(ml_dtypes.bfloat16), dtypes.int4b).astype(int).tolist() == [
        -2,
        1,
    ]


def test_a_scalar_stays_a_scalar():
    assert type(dtypes.quantize(1, dtypes.float32)) is float
    assert dtypes.quantize(np.float64(0.1), dtypes.float32).dtype == np.float32


def _same(actual, expected):
    assert actual == expected or (math.isnan(actual) and math.isnan(expected))
    assert math.copysign(1, actual) == math.copysign(1, expected) or math.isnan(expected)


# ---------------------------------------------------------------------------------------------------------- guests


@EVERY_SCALAR
def test_numpy_holds_every_value_of_the_type(dtype):
    container = dtypes.numpy_dtype(dtype)
    for value in (dtype.min_value, dtype.max_value, dtype.zero.value):
        held = dtypes.quantize(np.array(value), dtype)
        assert held.dtype == container
        assert (int(held) if isinstance(value, int) else float(held)) == value


def test_numpy_types_translate_back():
    for dtype in dtypes.SCALARS:
        back = dtypes.from_numpy(dtypes.numpy_dtype(dtype))
        assert back is dtype or dtypes.numpy_dtype(dtype).name in ("int8", "uint8", "float32")
    assert dtypes.from_numpy(np.float32) is dtypes.float32
    with pytest.raises(LanguageError, match="TK205: NumPy's type complex64 has no counterpart here"):
        dtypes.from_numpy(np.complex64)


def test_torch_types_translate_both_ways():
    for name in ("bool", "int8", "int32", "int64", "uint8", "uint16", "float16", "bfloat16", "float32", "float64"):
        ours = dtypes.from_torch(getattr(torch, name))
        assert dtypes.from_torch(name) is ours
        assert dtypes.torch_name(ours) == name
    assert dtypes.torch_name(dtypes.float8_e4m3) == "float8_e4m3fn"
    assert dtypes.torch_name(dtypes.tfloat32) == "float32"
    with pytest.raises(LanguageError, match="TK205: torch's type complex64 has no counterpart here"):
        dtypes.from_torch(torch.complex64)
    with pytest.raises(LanguageError, match="TK205: torch has no type for float6_e3m2"):
        dtypes.torch_name(dtypes.float6_e3m2)
