// SPDX-License-Identifier: Apache-2.0
// Barriers. __syncthreads, its _or, _and and _count forms and __syncwarp are CUDA's own; the CPU gets them here.
#pragma once
#include <tk/core.h>

#if !defined(__CUDACC__)
TK_DEVICE void __syncthreads(TK_LINE) { tk_rt_barrier(0, 0, line); }
TK_DEVICE int __syncthreads_or(int predicate, TK_LINE) { return tk_rt_barrier_count(predicate, line) != 0; }
TK_DEVICE int __syncthreads_count(int predicate, TK_LINE) { return tk_rt_barrier_count(predicate, line); }
TK_DEVICE int __syncthreads_and(int predicate, TK_LINE) { return tk_rt_barrier_count(!predicate, line) == 0; }
TK_DEVICE void __syncwarp(uint32_t mask = 0xffffffffu, TK_LINE) { tk_rt_syncwarp(mask, line); }
#endif

namespace tk {

// Wait until `threads` threads of the block (a multiple of 32) are at barrier `barrier`, one of 0 to 15.
#if defined(__CUDACC__)
TK_DEVICE void bar_sync(int barrier, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}
#else
TK_DEVICE void bar_sync(int barrier, int threads, TK_LINE) { tk_rt_barrier(barrier, threads, line); }
#endif

}  // namespace tk
