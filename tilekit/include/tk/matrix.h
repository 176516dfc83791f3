// SPDX-License-Identifier: Apache-2.0
// Matrices of 8 rows of 16 bytes (8x8 elements of 2 bytes) between shared memory and the registers of a warp. `row` of
// lane 8 q + r is the address of row r of matrix q, a multiple of 16; lanes of no matrix may pass any address. Word q of
// a lane's registers (4 bytes) holds of matrix q, in lane l, the l % 4th word of row l / 4; with _trans its elements
// 2 (l % 4) and 2 (l % 4) + 1 of *column* l / 4. stmatrix is of sm_90.
#pragma once
#include <tk/shared.h>

namespace tk {

#if defined(__CUDACC__)

#define TK_MATRIX_X1(name, trans)                                                                             \
  TK_DEVICE void ldmatrix_x1##name(void* registers, const void* row) {                                        \
    uint32_t r[1];                                                                                            \
    asm volatile("ldmatrix.sync.aligned.m8n8.x1" trans ".shared.b16 {%0}, [%1];"                              \
                 : "=r"(r[0])                                                                                 \
                 : "r"(detail::shared_address(row))                                                           \
                 : "memory");                                                                                 \
    memcpy(registers, r, sizeof r);                                                                           \
  }                                                                                                           \
  TK_DEVICE void stmatrix_x1##name(void* row, const void* registers) {                                        \
    uint32_t r[1];                                                                                            \
    memcpy(r, registers, sizeof r);                                                                           \
    asm volatile("stmatrix.sync.aligned.m8n8.x1" trans ".shared.b16 [%0], {%1};" ::"r"(                       \
                     detail::shared_address(row)),                                                            \
                 "r"(r[0])                                                                                    \
                 : "memory");                                                                                 \
  }

#define TK_MATRIX_X2(name, trans)                                                                             \
  TK_DEVICE void ldmatrix_x2##name(void* registers, const void* row) {                                        \
    uint32_t r[2];                                                                                            \
    asm volatile("ldmatrix.sync.aligned.m8n8.x2" trans ".shared.b16 {%0, %1}, [%2];"                          \
                 : "=r"(r[0]), "=r"(r[1])                                                                     \
                 : "r"(detail::shared_address(row))                                                           \
                 : "memory");                                                                                 \
    memcpy(registers, r, sizeof r);                                                                           \
  }                                                                                                           \
  TK_DEVICE void stmatrix_x2##name(void* row, const void* registers) {                                        \
    uint32_t r[2];                                                                                            \
    memcpy(r, registers, sizeof r);                                                                           \
    asm volatile("stmatrix.sync.aligned.m8n8.x2" trans ".shared.b16 [%0], {%1, %2};" ::"r"(                   \
                     detail::shared_address(row)),                                                            \
                 "r"(r[0]), "r"(r[1])                                                                         \
                 : "memory");                                                                                 \
  }

#define TK_MATRIX_X4(name, trans)                                                                             \
  TK_DEVICE void ldmatrix_x4##name(void* registers, const void* row) {                                        \
    uint32_t r[4];                                                                                            \
    asm volatile("ldmatrix.sync.aligned.m8n8.x4" trans ".shared.b16 {%0, %1, %2, %3}, [%4];"                  \
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])                                             \
                 : "r"(detail::shared_address(row))                                                           \
                 : "memory");                                                                                 \
    memcpy(registers, r, sizeof r);                                                                           \
  }                                                                                                           \
  TK_DEVICE void stmatrix_x4##name(void* row, const void* registers) {                                        \
    uint32_t r[4];                                                                                            \
    memcpy(r, registers, sizeof r);                                                                           \
    asm volatile("stmatrix.sync.aligned.m8n8.x4" trans ".shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(           \
                     detail::shared_address(row)),                                                            \
                 "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])                                                   \
                 : "memory");                                                                                 \
  }

TK_MATRIX_X1(, "")
TK_MATRIX_X1(_trans, ".trans")
TK_MATRIX_X2(, "")
TK_MATRIX_X2(_trans, ".trans")
TK_MATRIX_X4(, "")
TK_MATRIX_X4(_trans, ".trans")
#undef TK_MATRIX_X1
#undef TK_MATRIX_X2
#undef TK_MATRIX_X4

#else

#define TK_MATRIX(name, matrices, transposed)                                   \
  TK_DEVICE void ldmatrix_##name(void* registers, const void* row, TK_LINE) {   \
    TK_REQUIRE_REGISTERS(registers, 4 * matrices);                              \
    tk_rt_ldmatrix(registers, row, matrices, transposed, line);                 \
  }                                                                             \
  TK_DEVICE void stmatrix_##name(void* row, const void* registers, TK_LINE) {   \
    TK_REQUIRE_REGISTERS(registers, 4 * matrices);                              \
    tk_rt_stmatrix(row, registers, matrices, transposed, line);                 \
  }

TK_MATRIX(x1, 1, false)
TK_MATRIX(x2, 2, false)
TK_MATRIX(x4, 4, false)
TK_MATRIX(x1_trans, 1, true)
TK_MATRIX(x2_trans, 2, true)
TK_MATRIX(x4_trans, 4, true)
#undef TK_MATRIX

#endif

}  // namespace tk
