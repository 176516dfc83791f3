// SPDX-License-Identifier: Apache-2.0
// tk::cast<To>(x): every conversion between scalar types, with one meaning on GPU and CPU where C++ has none.
//
//   float to integer  toward zero, saturated to the destination's range, NaN gives 0
//   any to float      rounded once, to nearest even
//   any to bool       whether it is not zero (NaN is not)
//   integer to integer, bool to any   as in C++: the low bits; 0 and 1
#pragma once
#include <tk/core.h>

namespace tk {
namespace detail {

#if defined(__CUDACC__)

template <class To>
TK_DEVICE To float_to_integer(float x) {
  if constexpr (sizeof(To) == 8) {
    if (x != x) return To(0);  // the instruction alone gives 0x8000000000000000
    return is_signed<To> ? static_cast<To>(__float2ll_rz(x)) : static_cast<To>(__float2ull_rz(x));
  } else if constexpr (sizeof(To) == 4) {
    return is_signed<To> ? static_cast<To>(__float2int_rz(x)) : static_cast<To>(__float2uint_rz(x));
  } else {
    const int32_t wide = __float2int_rz(x);
    return static_cast<To>(::min(::max(wide, int32_t(lowest<To>)), int32_t(highest<To>)));
  }
}

template <class To>
TK_DEVICE To double_to_integer(double x) {
  if (x != x) return To(0);
  if constexpr (sizeof(To) == 8) {
    return is_signed<To> ? static_cast<To>(__double2ll_rz(x)) : static_cast<To>(__double2ull_rz(x));
  } else if constexpr (sizeof(To) == 4) {
    return is_signed<To> ? static_cast<To>(__double2int_rz(x)) : static_cast<To>(__double2uint_rz(x));
  } else {
    const int32_t wide = __double2int_rz(x);
    return static_cast<To>(::min(::max(wide, int32_t(lowest<To>)), int32_t(highest<To>)));
  }
}

template <class From>
TK_DEVICE half integer_to_half(From x) {
  if constexpr (sizeof(From) == 8) {
    return is_signed<From> ? __ll2half_rn(static_cast<long long>(x))
                           : __ull2half_rn(static_cast<unsigned long long>(x));
  } else {
    return is_signed<From> ? __int2half_rn(static_cast<int>(x)) : __uint2half_rn(static_cast<unsigned>(x));
  }
}

template <class From>
TK_DEVICE nv_bfloat16 integer_to_bfloat16(From x) {
  if constexpr (sizeof(From) == 8) {
    return is_signed<From> ? __ll2bfloat16_rn(static_cast<long long>(x))
                           : __ull2bfloat16_rn(static_cast<unsigned long long>(x));
  } else {
    return is_signed<From> ? __int2bfloat16_rn(static_cast<int>(x)) : __uint2bfloat16_rn(static_cast<unsigned>(x));
  }
}

TK_DEVICE float to_float(half x) { return __half2float(x); }
TK_DEVICE float to_float(nv_bfloat16 x) { return __bfloat162float(x); }
TK_DEVICE half float_to_half(float x) { return __float2half_rn(x); }
TK_DEVICE half double_to_half(double x) { return __double2half(x); }
TK_DEVICE nv_bfloat16 float_to_bfloat16(float x) { return __float2bfloat16_rn(x); }
TK_DEVICE nv_bfloat16 double_to_bfloat16(double x) { return __double2bfloat16(x); }

#else

template <class To>
TK_DEVICE To double_to_integer(double x) {
  // 2**63 and 2**64 are exact as doubles, highest<int64_t> is not: compare with the first value that does not fit
  constexpr double above = 2.0 * static_cast<double>(uint64_t(1) << (8 * sizeof(To) - 1 - is_signed<To>));
  if (x != x) return To(0);
  if (x >= above) return highest<To>;
  if (x <= static_cast<double>(lowest<To>)) return lowest<To>;
  return static_cast<To>(x);
}

template <class To>
TK_DEVICE To float_to_integer(float x) {
  return double_to_integer<To>(x);
}

template <class From>
TK_DEVICE half integer_to_half(From x) {
  return half(x);
}

template <class From>
TK_DEVICE nv_bfloat16 integer_to_bfloat16(From x) {
  return nv_bfloat16(x);
}

TK_DEVICE float to_float(half x) { return float(x); }
TK_DEVICE float to_float(nv_bfloat16 x) { return float(x); }
TK_DEVICE half float_to_half(float x) { return half(x); }
TK_DEVICE half double_to_half(double x) { return half(x); }
TK_DEVICE nv_bfloat16 float_to_bfloat16(float x) { return nv_bfloat16(x); }
TK_DEVICE nv_bfloat16 double_to_bfloat16(double x) { return nv_bfloat16(x); }

#endif

}  // namespace detail

template <class To, class From>
TK_DEVICE To cast(From x) {
  if constexpr (is_same<To, From>) {
    return x;
  } else if constexpr (is_same<From, tfloat32>) {
    return cast<To>(static_cast<float>(x));
  } else if constexpr (is_same<To, tfloat32>) {
    return tfloat32(cast<float>(x));
  } else if constexpr (is_float16<From>) {
    return cast<To>(detail::to_float(x));
  } else if constexpr (is_same<From, bool>) {
    return cast<To>(static_cast<int32_t>(x));
  } else if constexpr (is_same<To, bool>) {
    return x != From(0);
  } else if constexpr (is_integer<To> && is_same<From, float>) {
    return detail::float_to_integer<To>(x);
  } else if constexpr (is_integer<To> && is_same<From, double>) {
    return detail::double_to_integer<To>(x);
  } else if constexpr (is_same<To, half> && is_same<From, double>) {
    return detail::double_to_half(x);
  } else if constexpr (is_same<To, half> && is_same<From, float>) {
    return detail::float_to_half(x);
  } else if constexpr (is_same<To, half>) {
    return detail::integer_to_half(x);
  } else if constexpr (is_same<To, nv_bfloat16> && is_same<From, double>) {
    return detail::double_to_bfloat16(x);
  } else if constexpr (is_same<To, nv_bfloat16> && is_same<From, float>) {
    return detail::float_to_bfloat16(x);
  } else if constexpr (is_same<To, nv_bfloat16>) {
    return detail::integer_to_bfloat16(x);
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace tk
