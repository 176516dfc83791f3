// SPDX-License-Identifier: Apache-2.0
// Asynchronous copies of 4, 8 or 16 bytes from global to shared memory, both addresses multiples of that number. What is
// copied is there for the thread that asked for it once it has waited, and for others after a barrier behind that. The
// CPU copies at the wait, and until then the destination holds 0xff bytes: neither old nor new data may be relied on.
//
//   cp_async_N(shared, global)                  copies
//   cp_async_or_zero_N(shared, global, mask)    copies where the mask holds, writes zeros elsewhere
//   ..._evict_first                             and lets the second-level cache forget the line first
#pragma once
#include <tk/shared.h>

namespace tk {
namespace detail {

#if defined(__CUDACC__)
// Past the first-level cache where it can be, which is for 16 bytes.
template <int N>
TK_DEVICE void cp_async(void* shared, const void* global, int read_bytes) {
  const uint32_t to = shared_address(shared);
  const uint64_t from = __cvta_generic_to_global(global);
  if constexpr (N == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(read_bytes) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(N), "r"(read_bytes)
                 : "memory");
  }
}

template <int N>
TK_DEVICE void cp_async_evict_first(void* shared, const void* global, int read_bytes) {
  // A part of the address that is the same in all threads stays out of the instruction: for such a copy with a hint
  // ptxas 13.0 names an odd uniform register (sm_90, LDGSTS [R+UR0], desc[UR1]), which is an illegal instruction.
  uint32_t to;
  asm("and.b32 %0, %1, 0xffffff;" : "=r"(to) : "r"(shared_address(shared)));
  const uint64_t from = __cvta_generic_to_global(global);
  uint64_t policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  if constexpr (N == 16) {
    asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2, %3;" ::"r"(to), "l"(from),
                 "r"(read_bytes), "l"(policy)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global.L2::cache_hint [%0], [%1], %2, %3, %4;" ::"r"(to), "l"(from), "n"(N),
                 "r"(read_bytes), "l"(policy)
                 : "memory");
  }
}
#endif

}  // namespace detail

#if defined(__CUDACC__)

#define TK_CP_ASYNC(N, hint)                                                                             \
  TK_DEVICE void cp_async_##N##hint(void* shared, const void* global) {                                  \
    detail::cp_async##hint<N>(shared, global, N);                                                        \
  }                                                                                                      \
  TK_DEVICE void cp_async_or_zero_##N##hint(void* shared, const void* global, bool mask) {               \
    detail::cp_async##hint<N>(shared, global, mask ? N : 0);                                             \
  }

// Closes the group of the copies since the last one.
TK_DEVICE void cp_async_commit_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most the N latest groups are under way.
template <int N>
TK_DEVICE void cp_async_wait_group() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

// Waits for every copy, committed or not.
TK_DEVICE void cp_async_wait_all() { asm volatile("cp.async.wait_all;" ::: "memory"); }

#else

#define TK_CP_ASYNC(N, hint)                                                                             \
  TK_DEVICE void cp_async_##N##hint(void* shared, const void* global, TK_LINE) {                         \
    tk_rt_cp_async(shared, global, N, true, line);                                                       \
  }                                                                                                      \
  TK_DEVICE void cp_async_or_zero_##N##hint(void* shared, const void* global, bool mask, TK_LINE) {      \
    tk_rt_cp_async(shared, global, N, mask, line);                                                       \
  }

TK_DEVICE void cp_async_commit_group() { tk_rt_cp_async_commit_group(); }

template <int N>
TK_DEVICE void cp_async_wait_group() {
  tk_rt_cp_async_wait_group(N);
}

TK_DEVICE void cp_async_wait_all() { tk_rt_cp_async_wait_all(); }

#endif

TK_CP_ASYNC(4, )
TK_CP_ASYNC(8, )
TK_CP_ASYNC(16, )
TK_CP_ASYNC(4, _evict_first)
TK_CP_ASYNC(8, _evict_first)
TK_CP_ASYNC(16, _evict_first)
#undef TK_CP_ASYNC

}  // namespace tk
