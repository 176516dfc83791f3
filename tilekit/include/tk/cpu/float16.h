// SPDX-License-Identifier: Apache-2.0
// half and __nv_bfloat16 for a C++ compiler, under CUDA's names: every operation computes in float and rounds to
// nearest even, which for + - * / is the correctly rounded result. As in CUDA, mixing one with a float is ambiguous.
#pragma once
#include <stdint.h>

namespace tk::cpu {

inline uint32_t bits_of(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, 4);
  return bits;
}

inline float float_of(uint32_t bits) {
  float x;
  __builtin_memcpy(&x, &bits, 4);
  return x;
}

inline uint64_t bits_of(double x) {
  uint64_t bits;
  __builtin_memcpy(&bits, &x, 8);
  return bits;
}

inline double double_of(uint64_t bits) {
  double x;
  __builtin_memcpy(&x, &bits, 8);
  return x;
}

#if defined(__F16C__) && defined(__FLT16_MANT_DIG__)  // the compiler has the type and the CPU the instructions

inline float half_to_float(uint16_t bits) {
  _Float16 x;
  __builtin_memcpy(&x, &bits, 2);
  return static_cast<float>(x);
}

inline uint16_t float_to_half(float x) {
  const _Float16 narrow = static_cast<_Float16>(x);
  uint16_t bits;
  __builtin_memcpy(&bits, &narrow, 2);
  return bits;
}

#else

inline float half_to_float(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t magnitude = bits & 0x7fff;
  if (magnitude >= 0x7c00) return float_of(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
  // read as a float, the exponent is 112 too small; the product is exact, subnormals included
  return float_of(sign | bits_of(float_of(magnitude << 13) * 0x1p112f));
}

inline uint16_t float_to_half(float x) {
  const uint32_t bits = bits_of(x);
  const uint32_t sign = bits >> 16 & 0x8000;
  uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return static_cast<uint16_t>(sign | 0x7e00 | magnitude >> 13 & 0x3ff);
  if (magnitude >= 0x477ff000) return static_cast<uint16_t>(sign | 0x7c00);  // 65520 and above round to infinity
  if (magnitude < 0x38800000) {  // subnormal: adding 0.5 puts the last bit of a half at the last bit of the float
    return static_cast<uint16_t>(sign | (bits_of(float_of(magnitude) + 0.5f) - 0x3f000000));
  }
  magnitude += 0xfff + (magnitude >> 13 & 1);
  return static_cast<uint16_t>(sign | (magnitude - 0x38000000) >> 13);
}

#endif

inline float bfloat16_to_float(uint16_t bits) { return float_of(static_cast<uint32_t>(bits) << 16); }

inline uint16_t float_to_bfloat16(float x) {
  const uint32_t bits = bits_of(x);
  if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fff;
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// A wider number narrowed to float, *rounded to odd*: inexact results get an odd last bit, so that rounding once more,
// to a type with at least two bits less, gives what rounding once would have given.
inline float to_odd_float(double x) {
  const float nearest = static_cast<float>(x);
  if (static_cast<double>(nearest) == x || x != x) return nearest;
  if (bits_of(nearest) & 1) return nearest;
  // the last bit is even: the odd neighbor on the other side of x
  const bool away = (static_cast<double>(nearest) < x) == (x > 0);
  return float_of(bits_of(nearest) + (away ? 1 : -1));
}

inline double to_odd_double(int64_t x) {
  const bool negative = x < 0;
  uint64_t magnitude = negative ? 0 - static_cast<uint64_t>(x) : static_cast<uint64_t>(x);
  if (magnitude >> 53) magnitude = (magnitude & ~uint64_t(0x7ff)) | ((magnitude & 0x7ff) != 0) << 11;
  const double result = static_cast<double>(magnitude);
  return negative ? -result : result;
}

inline double to_odd_double(uint64_t x) {
  if (x >> 53) x = (x & ~uint64_t(0x7ff)) | static_cast<uint64_t>((x & 0x7ff) != 0) << 11;
  return static_cast<double>(x);
}

// x * y + z in double, rounded to odd. The product of two narrow numbers is exact in double.
inline double multiply_add_to_odd(float x, float y, float z) {
  const double product = static_cast<double>(x) * static_cast<double>(y);
  const double addend = z;
  const double sum = product + addend;
  const double part = sum - product;
  const double error = (product - (sum - part)) + (addend - part);  // what the sum lost, exactly
  if (error == 0 || error != error || (bits_of(sum) & 1)) return sum;
  const bool away = (error > 0) == (sum > 0);
  return double_of(bits_of(sum) + (away ? 1 : -1));
}

}  // namespace tk::cpu

// The members that the two types share. CUDA converts both ways with every arithmetic type, implicitly.
#define TK_FLOAT16(type, narrow, widen)                                                          \
  uint16_t bits;                                                                                 \
  type() = default;                                                                              \
  type(float x) : bits(narrow(x)) {}                                                             \
  type(double x) : bits(narrow(tk::cpu::to_odd_float(x))) {}                                     \
  type(short x) : type(static_cast<float>(x)) {}                                                 \
  type(unsigned short x) : type(static_cast<float>(x)) {}                                        \
  type(int x) : type(static_cast<double>(x)) {}                                                  \
  type(unsigned x) : type(static_cast<double>(x)) {}                                             \
  type(long x) : type(tk::cpu::to_odd_double(static_cast<int64_t>(x))) {}                        \
  type(unsigned long x) : type(tk::cpu::to_odd_double(static_cast<uint64_t>(x))) {}              \
  type(long long x) : type(tk::cpu::to_odd_double(static_cast<int64_t>(x))) {}                   \
  type(unsigned long long x) : type(tk::cpu::to_odd_double(static_cast<uint64_t>(x))) {}         \
  operator float() const { return widen(bits); }                                                 \
  type operator+() const { return *this; }                                                       \
  type operator-() const {                                                                       \
    type r;                                                                                      \
    r.bits = static_cast<uint16_t>(bits ^ 0x8000);                                               \
    return r;                                                                                    \
  }                                                                                              \
  type& operator+=(type y) { return *this = type(float(*this) + float(y)); }                     \
  type& operator-=(type y) { return *this = type(float(*this) - float(y)); }                     \
  type& operator*=(type y) { return *this = type(float(*this) * float(y)); }                     \
  type& operator/=(type y) { return *this = type(float(*this) / float(y)); }

#define TK_FLOAT16_OPERATORS(type)                                                               \
  inline type operator+(type x, type y) { return x += y; }                                       \
  inline type operator-(type x, type y) { return x -= y; }                                       \
  inline type operator*(type x, type y) { return x *= y; }                                       \
  inline type operator/(type x, type y) { return x /= y; }                                       \
  inline bool operator==(type x, type y) { return float(x) == float(y); }                        \
  inline bool operator!=(type x, type y) { return float(x) != float(y); }                        \
  inline bool operator<(type x, type y) { return float(x) < float(y); }                          \
  inline bool operator<=(type x, type y) { return float(x) <= float(y); }                        \
  inline bool operator>(type x, type y) { return float(x) > float(y); }                          \
  inline bool operator>=(type x, type y) { return float(x) >= float(y); }

struct __half {
  TK_FLOAT16(__half, tk::cpu::float_to_half, tk::cpu::half_to_float)
};
TK_FLOAT16_OPERATORS(__half)

struct __nv_bfloat16 {
  TK_FLOAT16(__nv_bfloat16, tk::cpu::float_to_bfloat16, tk::cpu::bfloat16_to_float)
};
TK_FLOAT16_OPERATORS(__nv_bfloat16)

#undef TK_FLOAT16
#undef TK_FLOAT16_OPERATORS

using half = __half;
using nv_bfloat16 = __nv_bfloat16;
