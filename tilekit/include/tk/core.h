// SPDX-License-Identifier: Apache-2.0
// What every other header stands on: fixed-width integers, half and __nv_bfloat16, a few type traits, shared memory,
// and TK_KERNEL. Nothing of the C++ library is included: NVRTC has none, and a kernel for the CPU must compile fast.
#pragma once

#if defined(__CUDACC__)

#if defined(__CUDACC_RTC__)  // NVRTC has no <stdint.h>
using int8_t = signed char;
using int16_t = short;
using int32_t = int;
using int64_t = long long;
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned int;
using uint64_t = unsigned long long;
#else
#include <stdint.h>
#endif
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#define TK_DEVICE static __device__ __forceinline__
#define TK_INLINE __device__ __forceinline__
#define TK_KERNEL(name)  // the loader finds a kernel by its own name

#else

#include <tk/cpu/language.h>
#include <tk/cpu/float16.h>

#define TK_DEVICE static inline __attribute__((always_inline))
#define TK_INLINE inline __attribute__((always_inline))

#endif

namespace tk {

template <class A, class B>
inline constexpr bool is_same = false;
template <class A>
inline constexpr bool is_same<A, A> = true;

template <class T>
inline constexpr bool is_float16 = is_same<T, half> || is_same<T, nv_bfloat16>;
template <class T>
inline constexpr bool is_float = is_float16<T> || is_same<T, float> || is_same<T, double>;

// An integer is any other arithmetic type, bool apart: int64_t is `long` here and `long long` there.
template <class T>
inline constexpr bool is_integer = !is_float<T> && !is_same<T, bool>;
template <class T>
inline constexpr bool is_signed = static_cast<T>(-1) < static_cast<T>(0);

// Least and greatest value of an integer type.
template <class T>
inline constexpr T lowest = is_signed<T> ? static_cast<T>(uint64_t(1) << (8 * sizeof(T) - 1)) : T(0);
template <class T>
inline constexpr T highest = static_cast<T>(~lowest<T>);

// A float rounded to 10 bits of fraction, ties away from zero: what matrix instructions take of one. It computes as a
// float and is rounded again where it is stored.
struct tfloat32 {
  tfloat32() = default;
  TK_INLINE tfloat32(float x) {
#if defined(__CUDACC__)
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
#else
    __builtin_memcpy(&bits, &x, sizeof bits);
    const bool is_number = (bits & 0x7f800000u) != 0x7f800000u;
    bits = is_number ? (bits + 0x1000u) & ~0x1fffu : bits;
#endif
  }
  TK_INLINE operator float() const {
    float x;
#if defined(__CUDACC__)
    x = __uint_as_float(bits);
#else
    __builtin_memcpy(&x, &bits, sizeof x);
#endif
    return x;
  }

 private:
  uint32_t bits;
};

// The block's dynamic shared memory, as T, from a byte offset on. It is aligned to 1024 bytes on a GPU.
template <class T>
TK_DEVICE T* shared_ptr(int32_t byte_offset) {
#if defined(__CUDACC__)
  extern __shared__ __align__(1024) uint8_t dynamic_shared_memory[];
  return reinterpret_cast<T*>(dynamic_shared_memory + byte_offset);
#else
  return reinterpret_cast<T*>(tk_current->shared + byte_offset);
#endif
}

}  // namespace tk
