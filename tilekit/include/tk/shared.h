// SPDX-License-Identifier: Apache-2.0
// Vector loads and stores of shared memory: N bytes between it and a register array, N one of 1, 2, 4, 8, 16. The
// shared address must be a multiple of N; the registers need no alignment. The CPU counts the bank conflicts of these
// accesses, which is why generated code goes through them for single elements too.
#pragma once
#include <tk/memory.h>

namespace tk {
namespace detail {

#if defined(__CUDACC__)
// The address within shared memory that PTX's .shared instructions take.
TK_DEVICE uint32_t shared_address(const void* shared) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(shared));
}

template <int N>
TK_DEVICE void load_shared(void* registers, const void* shared) {
  __builtin_assume(__isShared(shared));  // ld.shared rather than a generic load
  const auto value = *static_cast<const typename vector_of<N>::type*>(shared);
  memcpy(registers, &value, N);
}

template <int N>
TK_DEVICE void store_shared(void* shared, const void* registers) {
  __builtin_assume(__isShared(shared));
  typename vector_of<N>::type value;
  memcpy(&value, registers, N);
  *static_cast<typename vector_of<N>::type*>(shared) = value;
}
#else
template <int N>
TK_DEVICE void load_shared(void* registers, const void* shared, int line) {
#if defined(TK_CHECK)
  TK_REQUIRE_REGISTERS(registers, N);
  tk_rt_load_shared(registers, shared, N, line);
#else
  tk_rt_shared_access(shared, N, line);
  __builtin_memcpy(registers, shared, N);
#endif
}

template <int N>
TK_DEVICE void store_shared(void* shared, const void* registers, int line) {
#if defined(TK_CHECK)
  TK_REQUIRE_REGISTERS(registers, N);
  tk_rt_store_shared(shared, registers, N, line);
#else
  tk_rt_shared_access(shared, N, line);
  __builtin_memcpy(shared, registers, N);
#endif
}
#endif

}  // namespace detail

#if defined(__CUDACC__)
#define TK_SHARED(N)                                                                                             \
  TK_DEVICE void load_shared_##N(void* registers, const void* shared) { detail::load_shared<N>(registers, shared); } \
  TK_DEVICE void store_shared_##N(void* shared, const void* registers) { detail::store_shared<N>(shared, registers); }
#else
#define TK_SHARED(N)                                                              \
  TK_DEVICE void load_shared_##N(void* registers, const void* shared, TK_LINE) {  \
    detail::load_shared<N>(registers, shared, line);                              \
  }                                                                               \
  TK_DEVICE void store_shared_##N(void* shared, const void* registers, TK_LINE) { \
    detail::store_shared<N>(shared, registers, line);                             \
  }
#endif

TK_SHARED(1)
TK_SHARED(2)
TK_SHARED(4)
TK_SHARED(8)
TK_SHARED(16)
#undef TK_SHARED

}  // namespace tk
