// SPDX-License-Identifier: Apache-2.0
// Integer arithmetic with Python's meaning where C's differs. Everything wraps at the width of its type.
#pragma once
#include <tk/core.h>

namespace tk {

namespace detail {
template <int bytes>
struct unsigned_of {
  using type = uint32_t;
};
template <>
struct unsigned_of<8> {
  using type = uint64_t;
};
template <class T>
using unsigned_for = typename unsigned_of<sizeof(T)>::type;
}  // namespace detail

#if defined(TK_CHECK)
#define TK_DIVISION_LINE , int line = __builtin_LINE()
#define TK_DIVISION_BY_ZERO() tk_rt_division_by_zero(line)
#else
#define TK_DIVISION_LINE
#define TK_DIVISION_BY_ZERO() (void)0
#endif

// a + b, a - b and a * b, wrapping. C++ gives no meaning to signed numbers that overflow, and compilers for GPUs
// conclude from it: that a square is not negative, or that x + x is 0 only where x is.
template <class T>
TK_DEVICE T add(T a, T b) {
  static_assert(is_integer<T>, "tk::add takes integers");
  return static_cast<T>(static_cast<detail::unsigned_for<T>>(a) + static_cast<detail::unsigned_for<T>>(b));
}

template <class T>
TK_DEVICE T sub(T a, T b) {
  static_assert(is_integer<T>, "tk::sub takes integers");
  return static_cast<T>(static_cast<detail::unsigned_for<T>>(a) - static_cast<detail::unsigned_for<T>>(b));
}

template <class T>
TK_DEVICE T mul(T a, T b) {
  static_assert(is_integer<T>, "tk::mul takes integers");
  return static_cast<T>(static_cast<detail::unsigned_for<T>>(a) * static_cast<detail::unsigned_for<T>>(b));
}

// -a, wrapping.
template <class T>
TK_DEVICE T negate(T a) {
  static_assert(is_integer<T>, "tk::negate takes integers");
#if defined(__CUDACC__)
  // In int, which the compiler may not narrow again: where ptxas 13.0 (sm_90) widens what neg.s16 gives, it leaves out
  // that the lowest number stays negative.
  if constexpr (sizeof(T) == 2) {
    int32_t wide = -static_cast<int32_t>(a);
    asm("" : "+r"(wide));
    return static_cast<T>(wide);
  }
#endif
  return sub(T(0), a);
}

// a // b, rounded toward minus infinity, and 0 where b is 0: that happens in lanes outside a tensor, whose result nobody
// stores, and a compiler must not conclude from the division that it does not.
template <class T>
TK_DEVICE T floordiv(T a, T b TK_DIVISION_LINE) {
  static_assert(is_integer<T>, "tk::floordiv takes integers");
  if (b == T(0)) {
    TK_DIVISION_BY_ZERO();
    return T(0);
  }
  if constexpr (!is_signed<T>) {
    return static_cast<T>(a / b);
  } else {
    if (b == T(-1)) return negate(a);  // lowest / -1 must wrap, not trap
    const T quotient = static_cast<T>(a / b);
    return static_cast<T>(quotient - (a % b != 0 && (a < 0) != (b < 0)));
  }
}

// a % b, with the sign of b, and 0 where b is 0.
template <class T>
TK_DEVICE T floormod(T a, T b TK_DIVISION_LINE) {
  static_assert(is_integer<T>, "tk::floormod takes integers");
  if (b == T(0)) {
    TK_DIVISION_BY_ZERO();
    return T(0);
  }
  if constexpr (!is_signed<T>) {
    return static_cast<T>(a % b);
  } else {
    if (b == T(-1)) return T(0);
    const T remainder = static_cast<T>(a % b);
    return static_cast<T>(remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder);
  }
}

#undef TK_DIVISION_LINE
#undef TK_DIVISION_BY_ZERO

template <class T>
TK_DEVICE T min(T a, T b) {
  static_assert(is_integer<T>, "tk::min takes integers; tk::minimum also takes floats");
  return b < a ? b : a;
}

template <class T>
TK_DEVICE T max(T a, T b) {
  static_assert(is_integer<T>, "tk::max takes integers; tk::maximum also takes floats");
  return a < b ? b : a;
}

}  // namespace tk
