// SPDX-License-Identifier: Apache-2.0
// ldmatrix and stmatrix: matrices of 8 rows of 16 bytes. As 32 words in order, word l is lane l's.
#include <string.h>

#include "check.h"

namespace {

enum { kRows = 8, kRowBytes = 16 };

struct Operands {
  uint8_t *registers, *row;
};

struct Matrix {
  uint16_t element[kRows][kRows];
};

const Operands& operands(const Collective& c, int lane) { return *reinterpret_cast<const Operands*>(c.value[lane]); }

Matrix transpose(const Matrix& from) {
  Matrix to;
  for (int i = 0; i < kRows; ++i) {
    for (int k = 0; k < kRows; ++k) to.element[k][i] = from.element[i][k];
  }
  return to;
}

// The rows of a matrix are one access of 128 bytes.
void count_conflicts(const Collective& c, int matrix) {
  uint32_t units[kRows];
  for (int r = 0; r < kRows; ++r) {
    units[r] = static_cast<uint32_t>((operands(c, matrix * kRows + r).row - current_fiber().shared) / kRowBytes);
  }
  tk_worker->counters.bank_conflicts += bank_conflicts(units, kRows, kRows);
  tk_worker->counters.shared_bytes += sizeof(Matrix);
}

// A row is the whole warp's: the lane that names it is not the one that gets or gives its elements.
void check_row(const Collective& c, int lane, const uint8_t* row, Verb verb) {
  Checker* const checks = checker();
  if (checks == nullptr) return;
  const uint32_t offset = static_cast<uint32_t>(row - checks->shared_begin);
  shared_require_inside(*checks, offset, kRowBytes, c.line);
  const Actor warp = warp_of(current_fiber().warp->fibers[lane]);
  if (verb == kLoadsMatrix) shared_read(*checks, warp, offset, kRowBytes, site_of_line(c.line), verb);
  else shared_write(*checks, warp, offset, kRowBytes, site_of_line(c.line), verb, nullptr);
}

void run_ldmatrix(Collective& c) {
  require_whole_warp(c);
  for (int q = 0; q < c.kind; ++q) {
    Matrix m;
    for (int r = 0; r < kRows; ++r) {
      const uint8_t* const row = operands(c, q * kRows + r).row;
      check_row(c, q * kRows + r, row, kLoadsMatrix);
      memcpy(m.element[r], row, kRowBytes);
    }
    if (c.width) m = transpose(m);
    for (int lane = 0; lane < kWarpSize; ++lane) {
      memcpy(operands(c, lane).registers + 4 * q, reinterpret_cast<const uint8_t*>(&m) + 4 * lane, 4);
    }
    count_conflicts(c, q);
  }
}

void run_stmatrix(Collective& c) {
  require_whole_warp(c);
  for (int q = 0; q < c.kind; ++q) {
    Matrix m;
    for (int lane = 0; lane < kWarpSize; ++lane) {
      memcpy(reinterpret_cast<uint8_t*>(&m) + 4 * lane, operands(c, lane).registers + 4 * q, 4);
    }
    if (c.width) m = transpose(m);
    for (int r = 0; r < kRows; ++r) {
      uint8_t* const row = operands(c, q * kRows + r).row;
      check_row(c, q * kRows + r, row, kStoresMatrix);
      memcpy(row, m.element[r], kRowBytes);
    }
    count_conflicts(c, q);
  }
}

void move_matrices(const char* name, void (*run)(Collective&), Operands mine, int matrices, int transposed, int line) {
  Fiber& fiber = current_fiber();
  fiber.line = line;
  if (fiber.lane < matrices * kRows) shared_offset(mine.row, kRowBytes, line);
  collective(kAllLanes, name, line, run, matrices, transposed, reinterpret_cast<uint64_t>(&mine), 0);
}

}  // namespace

TK_EXPORT void tk_rt_ldmatrix(void* registers, const void* row, int matrices, int transposed, int line) {
  const Operands mine = {static_cast<uint8_t*>(registers), static_cast<uint8_t*>(const_cast<void*>(row))};
  move_matrices("ldmatrix", run_ldmatrix, mine, matrices, transposed, line);
}

TK_EXPORT void tk_rt_stmatrix(void* row, const void* registers, int matrices, int transposed, int line) {
  const Operands mine = {static_cast<uint8_t*>(const_cast<void*>(registers)), static_cast<uint8_t*>(row)};
  move_matrices("stmatrix", run_stmatrix, mine, matrices, transposed, line);
}
