// SPDX-License-Identifier: Apache-2.0
// CUDA's words for a C++ compiler: qualifiers, the built-in variables, printf, assert, and the entry point that
// TK_KERNEL gives a kernel.
#pragma once
#include <tk/cpu/abi.h>

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)
#define __grid_constant__

#define threadIdx (tk_current->thread_idx)
#define blockIdx (tk_current->block_idx)
#define blockDim (tk_current->block_dim)
#define gridDim (tk_current->grid_dim)
#define warpSize 32

#define printf(...) tk_rt_printf(__LINE__, __VA_ARGS__)
#undef assert
#define assert(condition) ((condition) ? (void)0 : tk_rt_fail(__LINE__, "assertion failed: " #condition))
#define __trap() tk_rt_fail(__LINE__, "the kernel executed __trap()")
#define __builtin_assume(condition) ((condition) ? (void)0 : tk_rt_fail(__LINE__, "this does not hold: " #condition))

using dim3 = tk_dim3;

// The last, hidden parameter of an emulated function: the line of source.cu that calls it.
#define TK_LINE int line = __builtin_LINE()

// In check mode, that `bytes` more bytes of an array follow, as far as the compiler knows the array.
#if defined(TK_CHECK)
#define TK_REQUIRE_REGISTERS(pointer, bytes) \
  if (__builtin_dynamic_object_size(pointer, 0) < (bytes)) tk_rt_registers_end(bytes, line)
#else
#define TK_REQUIRE_REGISTERS(pointer, bytes) (void)0
#endif

// void name__tk(void** arguments): one pointer for each parameter, as cuLaunchKernel takes them.
#define TK_KERNEL(name)                                                        \
  extern "C" __attribute__((visibility("default"))) void name##__tk(void** a); \
  void name##__tk(void** a) { tk::cpu::call(name, a); }

namespace tk::cpu {

template <class T>
inline T& take(void**& arguments) {
  return *static_cast<T*>(*arguments++);
}

// A constructor, because only braces promise that their arguments are evaluated from left to right.
struct Call {
  template <class... P>
  Call(void (*kernel)(P...), P... values) {
    kernel(values...);
  }
};

template <class... P>
inline void call(void (*kernel)(P...), void** arguments) {
  Call{kernel, take<P>(arguments)...};
}

}  // namespace tk::cpu
