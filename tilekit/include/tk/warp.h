// SPDX-License-Identifier: Apache-2.0
// Exchanges between the 32 lanes of a warp, for values of 1, 2, 4 or 8 bytes. Every lane that has not returned takes
// part. `width` (a power of two) cuts the warp into groups that keep to themselves.
#pragma once
#include <tk/core.h>

namespace tk {
namespace detail {

TK_DEVICE void copy_bytes(void* to, const void* from, int32_t bytes) {
#if defined(__CUDACC__)
  memcpy(to, from, bytes);
#else
  __builtin_memcpy(to, from, bytes);
#endif
}

// The bits of a value as an unsigned integer that the hardware can exchange, and back.
template <class T>
TK_DEVICE uint64_t to_bits(T value) {
  static_assert(sizeof(T) <= 8, "a warp exchanges values of at most 8 bytes");
  uint64_t bits = 0;
  copy_bytes(&bits, &value, sizeof(T));
  return bits;
}

template <class T>
TK_DEVICE T from_bits(uint64_t bits) {
  T value;
  copy_bytes(&value, &bits, sizeof(T));
  return value;
}

}  // namespace detail

#if defined(__CUDACC__)

#define TK_SHUFFLE(name, intrinsic)                                                                       \
  template <class T>                                                                                      \
  TK_DEVICE T name(T value, int lane, int width = 32) {                                                   \
    const uint64_t bits = detail::to_bits(value);                                                         \
    if constexpr (sizeof(T) == 8) {                                                                       \
      return detail::from_bits<T>(intrinsic(0xffffffffu, static_cast<unsigned long long>(bits), lane, width)); \
    } else {                                                                                              \
      return detail::from_bits<T>(intrinsic(0xffffffffu, static_cast<unsigned>(bits), lane, width));      \
    }                                                                                                     \
  }

// shfl_idx: the value of lane `lane` of the group. shfl_up: of the lane `lane` below. shfl_down: of the lane `lane`
// above. shfl_xor: of the lane whose number differs in the bits of `lane`. Who has no such lane keeps its own value.
TK_SHUFFLE(shfl_idx, __shfl_sync)
TK_SHUFFLE(shfl_up, __shfl_up_sync)
TK_SHUFFLE(shfl_down, __shfl_down_sync)
TK_SHUFFLE(shfl_xor, __shfl_xor_sync)
#undef TK_SHUFFLE

// The lanes whose predicate holds, as a mask: bit 0 is lane 0.
TK_DEVICE uint32_t ballot(bool predicate) { return __ballot_sync(0xffffffffu, predicate); }

#else

#define TK_SHUFFLE(name, kind)                                                                            \
  template <class T>                                                                                      \
  TK_DEVICE T name(T value, int lane, int width = 32, TK_LINE) {                                          \
    return detail::from_bits<T>(tk_rt_shuffle(kind, 0xffffffffu, detail::to_bits(value), lane, width, line)); \
  }

TK_SHUFFLE(shfl_idx, TK_SHUFFLE_IDX)
TK_SHUFFLE(shfl_up, TK_SHUFFLE_UP)
TK_SHUFFLE(shfl_down, TK_SHUFFLE_DOWN)
TK_SHUFFLE(shfl_xor, TK_SHUFFLE_XOR)
#undef TK_SHUFFLE

TK_DEVICE uint32_t ballot(bool predicate, TK_LINE) { return tk_rt_ballot(0xffffffffu, predicate, line); }

#endif

}  // namespace tk
