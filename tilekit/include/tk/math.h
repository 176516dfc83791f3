// SPDX-License-Identifier: Apache-2.0
// Floating-point functions, overloaded by type. half and __nv_bfloat16 are computed in float and rounded once.
//
// sqrt is IEEE on both machines, as is plain division. The other functions follow CUDA's accurate library on a GPU (1
// to 2 ulp, no fast-math forms but for exp2) and the C library on a CPU, so their last bits may differ.
#pragma once
#include <tk/cast.h>
#include <tk/core.h>
#include <tk/integer.h>

namespace tk {

#if defined(__CUDACC__)
#define TK_LIBM(name) ::name
#else
#define TK_LIBM(name) __builtin_##name
#endif

// The two narrow overloads of a function that float has.
#define TK_NARROW_1(name)                                                                              \
  TK_DEVICE half name(half x) { return cast<half>(name(cast<float>(x))); }                             \
  TK_DEVICE nv_bfloat16 name(nv_bfloat16 x) { return cast<nv_bfloat16>(name(cast<float>(x))); }

#define TK_NARROW_2(name)                                                                              \
  TK_DEVICE half name(half x, half y) { return cast<half>(name(cast<float>(x), cast<float>(y))); }     \
  TK_DEVICE nv_bfloat16 name(nv_bfloat16 x, nv_bfloat16 y) {                                           \
    return cast<nv_bfloat16>(name(cast<float>(x), cast<float>(y)));                                    \
  }

// tk::name for the four floating-point types, from the C library's float and double functions.
#define TK_UNARY(name, float_name, double_name)                                                        \
  TK_DEVICE float name(float x) { return TK_LIBM(float_name)(x); }                                     \
  TK_DEVICE double name(double x) { return TK_LIBM(double_name)(x); }                                  \
  TK_NARROW_1(name)

TK_UNARY(exp, expf, exp)
TK_UNARY(log, logf, log)
TK_UNARY(log2, log2f, log2)
TK_UNARY(sin, sinf, sin)
TK_UNARY(cos, cosf, cos)
TK_UNARY(tan, tanf, tan)
TK_UNARY(asin, asinf, asin)
TK_UNARY(acos, acosf, acos)
TK_UNARY(atan, atanf, atan)
TK_UNARY(sinh, sinhf, sinh)
TK_UNARY(cosh, coshf, cosh)
TK_UNARY(tanh, tanhf, tanh)
TK_UNARY(asinh, asinhf, asinh)
TK_UNARY(acosh, acoshf, acosh)
TK_UNARY(atanh, atanhf, atanh)
TK_UNARY(erf, erff, erf)
TK_UNARY(floor, floorf, floor)
TK_UNARY(ceil, ceilf, ceil)
TK_UNARY(trunc, truncf, trunc)
TK_UNARY(round, rintf, rint)  // halves go to the even neighbor, as in Python, NumPy and cvt.rni
TK_UNARY(abs, fabsf, fabs)

#undef TK_UNARY

// One instruction for float, which has no numbers below 2^-126: such a result is 0. A softmax does not see the
// difference, and what would look for such numbers takes three more instructions an element.
TK_DEVICE float exp2(float x) {
#if defined(__CUDACC__)
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
#else
  return x < -126.0f ? 0.0f : __builtin_exp2f(x);
#endif
}
TK_DEVICE double exp2(double x) { return TK_LIBM(exp2)(x); }
TK_NARROW_1(exp2)

// The absolute value of an integer; the lowest one wraps to itself.
template <class T>
TK_DEVICE T abs(T x) {
  static_assert(is_integer<T>, "tk::abs takes a number");
  return x < T(0) ? static_cast<T>(uint64_t(0) - static_cast<uint64_t>(x)) : x;
}

#if defined(__CUDACC__)
TK_DEVICE float sqrt(float x) { return __fsqrt_rn(x); }
TK_DEVICE double sqrt(double x) { return __dsqrt_rn(x); }
TK_DEVICE float rsqrt(float x) { return ::rsqrtf(x); }
TK_DEVICE double rsqrt(double x) { return ::rsqrt(x); }
#else
TK_DEVICE float sqrt(float x) { return __builtin_sqrtf(x); }
TK_DEVICE double sqrt(double x) { return __builtin_sqrt(x); }
TK_DEVICE float rsqrt(float x) { return static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(x))); }
TK_DEVICE double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
#endif
TK_NARROW_1(sqrt)
TK_NARROW_1(rsqrt)

#if defined(__CUDACC__)
TK_DEVICE float pow(float x, float y) { return ::powf(x, y); }
TK_DEVICE double pow(double x, double y) { return ::pow(x, y); }
#else
// C's pow is 1 here for a quiet NaN too, but not for a signaling one, which a GPU does not know.
TK_DEVICE float pow(float x, float y) { return x == 1 || y == 0 ? 1 : __builtin_powf(x, y); }
TK_DEVICE double pow(double x, double y) { return x == 1 || y == 0 ? 1 : __builtin_pow(x, y); }
#endif
TK_NARROW_2(pow)

// x * y + z, rounded once in every type.
TK_DEVICE float fma(float x, float y, float z) { return TK_LIBM(fmaf)(x, y, z); }
TK_DEVICE double fma(double x, double y, double z) { return TK_LIBM(fma)(x, y, z); }
#if defined(__CUDACC__)
TK_DEVICE half fma(half x, half y, half z) { return __hfma(x, y, z); }
TK_DEVICE nv_bfloat16 fma(nv_bfloat16 x, nv_bfloat16 y, nv_bfloat16 z) { return __hfma(x, y, z); }
#else
TK_DEVICE half fma(half x, half y, half z) { return half(cpu::multiply_add_to_odd(x, y, z)); }
TK_DEVICE nv_bfloat16 fma(nv_bfloat16 x, nv_bfloat16 y, nv_bfloat16 z) {
  return nv_bfloat16(cpu::multiply_add_to_odd(x, y, z));
}
#endif

// The two kinds of number that C++ has no literals for.
#if defined(__CUDACC__)
template <class T>
TK_DEVICE T infinity() {
  return cast<T>(__int_as_float(0x7f800000));
}
template <class T>
TK_DEVICE T nan() {
  return cast<T>(__int_as_float(0x7fc00000));
}
#else
template <class T>
TK_DEVICE T infinity() {
  return cast<T>(__builtin_huge_valf());
}
template <class T>
TK_DEVICE T nan() {
  return cast<T>(__builtin_nanf(""));
}
#endif

TK_DEVICE bool isnan(float x) { return x != x; }
TK_DEVICE bool isnan(double x) { return x != x; }
TK_DEVICE bool isnan(half x) { return isnan(cast<float>(x)); }
TK_DEVICE bool isnan(nv_bfloat16 x) { return isnan(cast<float>(x)); }

TK_DEVICE bool isinf(float x) { return abs(x) > 0x1.fffffep127f; }
TK_DEVICE bool isinf(double x) { return abs(x) > 0x1.fffffffffffffp1023; }
TK_DEVICE bool isinf(half x) { return isinf(cast<float>(x)); }
TK_DEVICE bool isinf(nv_bfloat16 x) { return isinf(cast<float>(x)); }

// The lesser and the greater of two floats; NaN if either is NaN (as in torch and NumPy, unlike fminf), and -0 < +0.
#if defined(__CUDACC__)
TK_DEVICE float minimum(float x, float y) {
  float r;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y));
  return r;
}
TK_DEVICE float maximum(float x, float y) {
  float r;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y));
  return r;
}
TK_DEVICE double minimum(double x, double y) { return isnan(x) || isnan(y) ? x + y : ::fmin(x, y); }
TK_DEVICE double maximum(double x, double y) { return isnan(x) || isnan(y) ? x + y : ::fmax(x, y); }
TK_DEVICE half minimum(half x, half y) { return __hmin_nan(x, y); }
TK_DEVICE half maximum(half x, half y) { return __hmax_nan(x, y); }
TK_DEVICE nv_bfloat16 minimum(nv_bfloat16 x, nv_bfloat16 y) { return __hmin_nan(x, y); }
TK_DEVICE nv_bfloat16 maximum(nv_bfloat16 x, nv_bfloat16 y) { return __hmax_nan(x, y); }
#else
TK_DEVICE double minimum(double x, double y) {
  if (isnan(x) || isnan(y)) return x + y;
  if (x == y) return __builtin_signbit(x) ? x : y;
  return x < y ? x : y;
}
TK_DEVICE double maximum(double x, double y) {
  if (isnan(x) || isnan(y)) return x + y;
  if (x == y) return __builtin_signbit(x) ? y : x;
  return x < y ? y : x;
}
TK_DEVICE float minimum(float x, float y) {
  if (isnan(x) || isnan(y)) return x + y;
  if (x == y) return __builtin_signbit(x) ? x : y;
  return x < y ? x : y;
}
TK_DEVICE float maximum(float x, float y) {
  if (isnan(x) || isnan(y)) return x + y;
  if (x == y) return __builtin_signbit(x) ? y : x;
  return x < y ? y : x;
}
TK_NARROW_2(minimum)
TK_NARROW_2(maximum)
#endif

// For integers they are min and max, so that generated code needs one name.
template <class T>
TK_DEVICE T minimum(T x, T y) {
  return min(x, y);
}
template <class T>
TK_DEVICE T maximum(T x, T y) {
  return max(x, y);
}

#undef TK_NARROW_1
#undef TK_NARROW_2
#undef TK_LIBM

}  // namespace tk
