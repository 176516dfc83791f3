// SPDX-License-Identifier: Apache-2.0
// Semaphores in global memory, by which blocks wait for each other. Every thread of the block calls these, like a
// barrier: what other blocks wrote before they released is visible to all of it after the lock.
#pragma once
#include <tk/sync.h>

namespace tk {

#if defined(__CUDACC__)

// Waits until the semaphore has this value.
TK_DEVICE void lock_semaphore(const int32_t* semaphore, int32_t value) {
  if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0) {
    int32_t seen;
    do {
      asm volatile("ld.acquire.gpu.global.b32 %0, [%1];"
                   : "=r"(seen)
                   : "l"(__cvta_generic_to_global(semaphore))
                   : "memory");
    } while (seen != value);
  }
  __syncthreads();
}

// Gives the semaphore this value, after all that the block did before.
TK_DEVICE void release_semaphore(int32_t* semaphore, int32_t value) {
  __syncthreads();
  if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0) {
    asm volatile("st.release.gpu.global.b32 [%0], %1;" ::"l"(__cvta_generic_to_global(semaphore)), "r"(value)
                 : "memory");
  }
}

#else

TK_DEVICE void lock_semaphore(const int32_t* semaphore, int32_t value, TK_LINE) {
  tk_rt_lock_semaphore(semaphore, value, line);
}

TK_DEVICE void release_semaphore(int32_t* semaphore, int32_t value, TK_LINE) {
  tk_rt_release_semaphore(semaphore, value, line);
}

#endif

}  // namespace tk
