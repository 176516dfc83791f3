// SPDX-License-Identifier: Apache-2.0
// Vector loads and stores: N bytes between global memory and a register array, N one of 1, 2, 4, 8, 16. The global
// address must be a multiple of N, as on a GPU; the registers need no alignment. A scalar access is plain C++.
#pragma once
#include <tk/core.h>

namespace tk {
namespace detail {

#if defined(__CUDACC__)
using vector_16 = uint4;
using vector_8 = uint2;
#else
using vector_16 = uint32_t __attribute__((vector_size(16)));
using vector_8 = uint64_t;
#endif

// What is moved by one access of N bytes.
template <int N>
struct vector_of;
template <>
struct vector_of<1> {
  using type = uint8_t;
};
template <>
struct vector_of<2> {
  using type = uint16_t;
};
template <>
struct vector_of<4> {
  using type = uint32_t;
};
template <>
struct vector_of<8> {
  using type = vector_8;
};
template <>
struct vector_of<16> {
  using type = vector_16;
};

#if defined(__CUDACC__)
template <int N>
TK_DEVICE void load_global(void* registers, const void* global) {
  const auto value = *static_cast<const typename vector_of<N>::type*>(global);
  memcpy(registers, &value, N);
}

template <int N>
TK_DEVICE void store_global(void* global, const void* registers) {
  typename vector_of<N>::type value;
  memcpy(&value, registers, N);
  *static_cast<typename vector_of<N>::type*>(global) = value;
}
#else
// Makes the compiler have all of a value in a register here. It would load only the bytes that are used, where they
// are used, and an access that is out of bounds would be missed, or blamed on another line.
template <class T>
TK_DEVICE void in_register(T& value) {
  if constexpr (sizeof(T) == 16) {
#if defined(__x86_64__)
    asm volatile("" : "+x"(value));
#else
    asm volatile("" : "+w"(value));
#endif
  } else {
    asm volatile("" : "+r"(value));
  }
}

template <int N>
TK_DEVICE void load_global(void* registers, const void* global, int line) {
#if defined(TK_CHECK)
  TK_REQUIRE_REGISTERS(registers, N);
  tk_rt_load_global(registers, global, N, line);
#else
  if (__builtin_expect(reinterpret_cast<uintptr_t>(global) % N, 0)) tk_rt_misaligned(global, N, line);
  typename vector_of<N>::type value;
  __builtin_memcpy(&value, global, N);
  in_register(value);
  __builtin_memcpy(registers, &value, N);
#endif
}

template <int N>
TK_DEVICE void store_global(void* global, const void* registers, int line) {
#if defined(TK_CHECK)
  TK_REQUIRE_REGISTERS(registers, N);
  tk_rt_store_global(global, registers, N, line);
#else
  if (__builtin_expect(reinterpret_cast<uintptr_t>(global) % N, 0)) tk_rt_misaligned(global, N, line);
  __builtin_memcpy(global, registers, N);
#endif
}
#endif

}  // namespace detail

// load_global_N reads; load_global_or_zero_N reads where the mask holds and fills the registers with zeros elsewhere.
#if defined(__CUDACC__)
#define TK_MEMORY(N)                                                                                             \
  TK_DEVICE void load_global_##N(void* registers, const void* global) { detail::load_global<N>(registers, global); } \
  TK_DEVICE void load_global_or_zero_##N(void* registers, const void* global, bool mask) {                       \
    typename detail::vector_of<N>::type value = {};                                                              \
    if (mask) value = *static_cast<const typename detail::vector_of<N>::type*>(global);                          \
    memcpy(registers, &value, N);                                                                                \
  }                                                                                                              \
  TK_DEVICE void store_global_##N(void* global, const void* registers) { detail::store_global<N>(global, registers); }
#else
#define TK_MEMORY(N)                                                                          \
  TK_DEVICE void load_global_##N(void* registers, const void* global, TK_LINE) {              \
    detail::load_global<N>(registers, global, line);                                          \
  }                                                                                           \
  TK_DEVICE void load_global_or_zero_##N(void* registers, const void* global, bool mask, TK_LINE) { \
    if (mask) return detail::load_global<N>(registers, global, line);                         \
    __builtin_memset(registers, 0, N);                                                        \
  }                                                                                           \
  TK_DEVICE void store_global_##N(void* global, const void* registers, TK_LINE) {             \
    detail::store_global<N>(global, registers, line);                                         \
  }
#endif

TK_MEMORY(1)
TK_MEMORY(2)
TK_MEMORY(4)
TK_MEMORY(8)
TK_MEMORY(16)
#undef TK_MEMORY

// The bits of N bytes of registers in registers of another type.
template <int N>
TK_DEVICE void view(void* registers, const void* others) {
#if defined(__CUDACC__)
  memcpy(registers, others, N);
#else
  __builtin_memcpy(registers, others, N);
#endif
}

}  // namespace tk
