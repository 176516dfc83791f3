// SPDX-License-Identifier: Apache-2.0
// Vector loads and stores: N bytes between global memory and a register array, N one of 1, 2, 4, 8, 16. The global
// address must be a multiple of N, as on a GPU; the registers need no alignment. A scalar access is plain C++.
#pragma once
#include <tk/core.h>

namespace tk {
namespace detail {

#if defined(__CUDACC__)
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
  using type = uint2;
};
template <>
struct vector_of<16> {
  using type = uint4;
};

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
template <int N>
TK_DEVICE void load_global(void* registers, const void* global, int line) {
  if (__builtin_expect(reinterpret_cast<uintptr_t>(global) % N, 0)) tk_rt_misaligned(global, N, line);
  __builtin_memcpy(registers, global, N);
}

template <int N>
TK_DEVICE void store_global(void* global, const void* registers, int line) {
  if (__builtin_expect(reinterpret_cast<uintptr_t>(global) % N, 0)) tk_rt_misaligned(global, N, line);
  __builtin_memcpy(global, registers, N);
}
#endif

}  // namespace detail

#if defined(__CUDACC__)
#define TK_MEMORY(N)                                                                                             \
  TK_DEVICE void load_global_##N(void* registers, const void* global) { detail::load_global<N>(registers, global); } \
  TK_DEVICE void store_global_##N(void* global, const void* registers) { detail::store_global<N>(global, registers); }
#else
#define TK_MEMORY(N)                                                                          \
  TK_DEVICE void load_global_##N(void* registers, const void* global, TK_LINE) {              \
    detail::load_global<N>(registers, global, line);                                          \
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

}  // namespace tk
