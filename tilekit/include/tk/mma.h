// SPDX-License-Identifier: Apache-2.0
// Matrix multiply-accumulate of a warp, d = a * b + c, for each shape and type of PTX's mma that generated code uses.
//
//   mma_<shape>_<operand>_<accumulator>(d, a, b, c)        one instruction
//   mma_tile_<...><MI, NI, KI, DM, DN, AM, AK, BK, BN>(d, a, b)   d += a * b, MI x NI x KI instructions
//
// Pointers lead to this lane's registers, in the order in which PTX numbers the elements of a fragment. In a tile the
// fragment of instruction (mi, ni, ki) begins mi * DM + ni * DN elements after d, mi * AM + ki * AK after a, and
// ki * BK + ni * BN after b; AR and BR are the elements from one 32-bit register of a fragment to the next, which a
// layout may have pulled apart. For each accumulator ki ascends.
//
// f16, bf16 and tf32 operands are multiplied exactly. A tf32 operand is a float whose 13 low bits count for nothing: PTX
// leaves open what they do, and an H200 does not see them (tests/include/test_mma.py). A GPU adds the products of an
// instruction in an order and with guard bits that are not documented; the CPU adds them in float, in k order, rounding
// each time, and an f16 accumulator once more after each instruction. Integers are exact, and wrap.
#pragma once
#include <tk/warp.h>

namespace tk {
namespace detail {

// What a kind of mma is made of: bytes of an operand's and an accumulator's element, 32-bit registers of a lane's
// fragments, and on a GPU the instruction itself, which adds a * b to d.

#if defined(__CUDACC__)

#define TK_MMA_TRAITS(operand, accumulator, registers_d, registers_a, registers_b)                        \
  static constexpr int operand_bytes = operand, accumulator_bytes = accumulator, d_registers = registers_d, \
                       a_registers = registers_a, b_registers = registers_b;

#define TK_MMA_FLOAT(text)                                                                                   \
  using d_register = float;                                                                                  \
  TK_DEVICE void run(float* d, const uint32_t* a, const uint32_t* b) {                                       \
    asm volatile("mma.sync.aligned." text                                                                    \
                 " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                          \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                            \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));                        \
  }

struct m16n8k16_f16_f32 {
  TK_MMA_TRAITS(2, 4, 4, 4, 2)
  TK_MMA_FLOAT("m16n8k16.row.col.f32.f16.f16.f32")
};

struct m16n8k16_bf16_f32 {
  TK_MMA_TRAITS(2, 4, 4, 4, 2)
  TK_MMA_FLOAT("m16n8k16.row.col.f32.bf16.bf16.f32")
};

struct m16n8k8_tf32_f32 {
  TK_MMA_TRAITS(4, 4, 4, 4, 2)
  TK_MMA_FLOAT("m16n8k8.row.col.f32.tf32.tf32.f32")
};

struct m16n8k16_f16_f16 {
  TK_MMA_TRAITS(2, 2, 2, 4, 2)
  using d_register = uint32_t;
  TK_DEVICE void run(uint32_t* d, const uint32_t* a, const uint32_t* b) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"
        : "+r"(d[0]), "+r"(d[1])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
};

struct m16n8k32_i8_i32 {
  TK_MMA_TRAITS(1, 4, 4, 4, 2)
  using d_register = uint32_t;
  TK_DEVICE void run(uint32_t* d, const uint32_t* a, const uint32_t* b) {
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
        "%3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
};

struct m16n8k16_i8_i32 {
  TK_MMA_TRAITS(1, 4, 4, 2, 1)
  using d_register = uint32_t;
  TK_DEVICE void run(uint32_t* d, const uint32_t* a, const uint32_t* b) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(b[0]));
  }
};

struct m8n8k16_i8_i32 {
  TK_MMA_TRAITS(1, 4, 2, 1, 1)
  using d_register = uint32_t;
  TK_DEVICE void run(uint32_t* d, const uint32_t* a, const uint32_t* b) {
    asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};"
                 : "+r"(d[0]), "+r"(d[1])
                 : "r"(a[0]), "r"(b[0]));
  }
};

#undef TK_MMA_TRAITS
#undef TK_MMA_FLOAT

// The registers of a fragment, gathered from elements that begin at `from` and lie `stride` bytes apart.
template <int registers>
TK_DEVICE void gather(uint32_t* to, const void* from, int stride) {
#pragma unroll
  for (int r = 0; r < registers; ++r) memcpy(&to[r], static_cast<const uint8_t*>(from) + r * stride, 4);
}

template <class Kind>
TK_DEVICE void mma(void* d, const void* a, const void* b, const void* c, int a_stride, int b_stride) {
  typename Kind::d_register sum[Kind::d_registers];
  uint32_t left[Kind::a_registers], right[Kind::b_registers];
  memcpy(sum, c, sizeof sum);
  gather<Kind::a_registers>(left, a, a_stride);
  gather<Kind::b_registers>(right, b, b_stride);
  Kind::run(sum, left, right);
  memcpy(d, sum, sizeof sum);
}

template <class Kind, int MI, int NI, int KI, int DM, int DN, int AM, int AK, int BK, int BN, int AR, int BR>
TK_DEVICE void mma_tile(void* d, const void* a, const void* b) {
#pragma unroll
  for (int ki = 0; ki < KI; ++ki) {
#pragma unroll
    for (int mi = 0; mi < MI; ++mi) {
#pragma unroll
      for (int ni = 0; ni < NI; ++ni) {
        uint8_t* const sum = static_cast<uint8_t*>(d) + (mi * DM + ni * DN) * Kind::accumulator_bytes;
        const uint8_t* const left = static_cast<const uint8_t*>(a) + (mi * AM + ki * AK) * Kind::operand_bytes;
        const uint8_t* const right = static_cast<const uint8_t*>(b) + (ki * BK + ni * BN) * Kind::operand_bytes;
        mma<Kind>(sum, left, right, sum, AR * Kind::operand_bytes, BR * Kind::operand_bytes);
      }
    }
  }
}

#else

#define TK_MMA_KIND(name, number, operand, accumulator)                                                     \
  struct name {                                                                                             \
    static constexpr int kind = number, operand_bytes = operand, accumulator_bytes = accumulator;           \
  };
TK_MMA_KIND(m16n8k16_f16_f32, TK_MMA_M16N8K16_F16_F32, 2, 4)
TK_MMA_KIND(m16n8k16_f16_f16, TK_MMA_M16N8K16_F16_F16, 2, 2)
TK_MMA_KIND(m16n8k16_bf16_f32, TK_MMA_M16N8K16_BF16_F32, 2, 4)
TK_MMA_KIND(m16n8k8_tf32_f32, TK_MMA_M16N8K8_TF32_F32, 4, 4)
TK_MMA_KIND(m16n8k32_i8_i32, TK_MMA_M16N8K32_I8_I32, 1, 4)
TK_MMA_KIND(m16n8k16_i8_i32, TK_MMA_M16N8K16_I8_I32, 1, 4)
TK_MMA_KIND(m8n8k16_i8_i32, TK_MMA_M8N8K16_I8_I32, 1, 4)
#undef TK_MMA_KIND

// A tile for the runtime, which counts in bytes.
template <class Kind, int MI, int NI, int KI, int DM, int DN, int AM, int AK, int BK, int BN, int AR, int BR>
inline constexpr tk_mma_tile tile_of = {
    Kind::kind, MI, NI, KI,
    DM * Kind::accumulator_bytes, DN * Kind::accumulator_bytes,
    AM * Kind::operand_bytes, AK * Kind::operand_bytes, AR * Kind::operand_bytes,
    BK * Kind::operand_bytes, BN * Kind::operand_bytes, BR * Kind::operand_bytes};

#endif

}  // namespace detail

#if defined(__CUDACC__)
#define TK_MMA(name, per_register)                                                                          \
  TK_DEVICE void mma_##name(void* d, const void* a, const void* b, const void* c) {                         \
    detail::mma<detail::name>(d, a, b, c, 4, 4);                                                            \
  }                                                                                                         \
  template <int MI, int NI, int KI, int DM, int DN, int AM, int AK, int BK, int BN, int AR = per_register,  \
            int BR = per_register>                                                                          \
  TK_DEVICE void mma_tile_##name(void* d, const void* a, const void* b) {                                   \
    detail::mma_tile<detail::name, MI, NI, KI, DM, DN, AM, AK, BK, BN, AR, BR>(d, a, b);                    \
  }
#else
#define TK_MMA(name, per_register)                                                                          \
  TK_DEVICE void mma_##name(void* d, const void* a, const void* b, const void* c, TK_LINE) {                \
    tk_rt_mma(&detail::tile_of<detail::name, 1, 1, 1, 0, 0, 0, 0, 0, 0, per_register, per_register>, d, a, b, c, line); \
  }                                                                                                         \
  template <int MI, int NI, int KI, int DM, int DN, int AM, int AK, int BK, int BN, int AR = per_register,  \
            int BR = per_register>                                                                          \
  TK_DEVICE void mma_tile_##name(void* d, const void* a, const void* b, TK_LINE) {                          \
    tk_rt_mma(&detail::tile_of<detail::name, MI, NI, KI, DM, DN, AM, AK, BK, BN, AR, BR>, d, a, b, d, line); \
  }
#endif

TK_MMA(m16n8k16_f16_f32, 2)
TK_MMA(m16n8k16_f16_f16, 2)
TK_MMA(m16n8k16_bf16_f32, 2)
TK_MMA(m16n8k8_tf32_f32, 1)
TK_MMA(m16n8k32_i8_i32, 4)
TK_MMA(m16n8k16_i8_i32, 4)
TK_MMA(m8n8k16_i8_i32, 4)
#undef TK_MMA

}  // namespace tk
