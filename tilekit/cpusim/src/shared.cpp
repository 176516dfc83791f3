// SPDX-License-Identifier: Apache-2.0
// Shared memory: what an access must obey, and how often the lanes of a warp get into each other's way.
//
// Shared memory is 32 banks of 4 bytes. An access of N bytes a lane is served 128 bytes at a time; lanes that want
// different words of one bank take turns, lanes that want the same word are served together. The lanes of a warp run
// one after the other here, so each access is kept until all of them have made it: the n-th time that they come to the
// same line with the same size is taken for one access of the warp.
#include "report.h"

namespace {

// Whether the fiber may be part of `access`.
bool fits(const SharedAccess& access, const Fiber& fiber, int bytes, int line) {
  return access.line == line && access.bytes == bytes && !(access.lanes >> fiber.lane & 1);
}

// The warp's access that the fiber makes now: one that other lanes have begun, or a new one; nullptr if there is no
// room for it.
SharedAccess* find_access(Warp& warp, const Fiber& fiber, int bytes, int line) {
  for (int i = fiber.next_access; i < warp.access_count; ++i) {
    if (fits(warp.accesses[i], fiber, bytes, line)) return &warp.accesses[i];
  }
  if (warp.access_count == kOpenAccesses) return nullptr;
  SharedAccess& access = warp.accesses[warp.access_count++];
  access.line = line;
  access.bytes = bytes;
  access.lanes = 0;
  return &access;
}

// How many different units are wanted of the bank of which most are.
int deepest_bank(const uint32_t* units, int count, int banks) {
  uint8_t depth[kWarpSize] = {};  // by bank
  int deepest = 0;
  for (int i = 0; i < count; ++i) {
    bool known = false;
    for (int k = 0; k < i && !known; ++k) known = units[k] == units[i];
    if (known) continue;
    const int here = ++depth[units[i] & (banks - 1)];
    if (here > deepest) deepest = here;
  }
  return deepest;
}

int conflicts_of(const SharedAccess& access) {
  const int unit = access.bytes < 4 ? 4 : access.bytes, lanes_at_once = 128 / unit;
  const int shift = __builtin_ctz(unit);
  int conflicts = 0;
  for (int begin = 0; begin < kWarpSize; begin += lanes_at_once) {
    uint32_t units[kWarpSize];
    int count = 0;
    for (int lane = begin; lane < begin + lanes_at_once; ++lane) {
      if (access.lanes >> lane & 1) units[count++] = access.offset[lane] >> shift;
    }
    conflicts += bank_conflicts(units, count, lanes_at_once);
  }
  return conflicts;
}

}  // namespace

void fail_shared_access(int64_t offset, int bytes, int line) {
  const uint32_t shared_bytes = current_block().shared_bytes;
  if (offset < 0 || offset + bytes > shared_bytes) {
    fail(TK_OUT_OF_BOUNDS, line, "out-of-bounds access to shared memory: byte offset %lld, the block has %u bytes",
         static_cast<long long>(offset), shared_bytes);
  }
  fail(TK_MISALIGNED, line, "access of %d bytes at byte %lld of shared memory, no multiple of %d (a GPU traps here)",
       bytes, static_cast<long long>(offset), bytes);
}

void note_access(uint32_t offset, int bytes, int line) {
  Block& block = current_block();
  Fiber& fiber = current_fiber();
  Warp& warp = *fiber.warp;
  SharedAccess* access = find_access(warp, fiber, bytes, line);
  while (access == nullptr) {  // the others catch up first
    const uint32_t turn = warp.access_turn;
    yield(block, fiber);
    if (warp.access_turn == turn) close_accesses(block, warp);
    access = find_access(warp, fiber, bytes, line);
  }
  block.worker->counters.shared_bytes += bytes;
  access->lanes |= uint32_t(1) << fiber.lane;
  access->offset[fiber.lane] = offset;
  fiber.next_access = static_cast<int32_t>(access - warp.accesses) + 1;
}

void close_accesses(Block& block, Warp& warp) {
  uint64_t conflicts = 0;
  for (int i = 0; i < warp.access_count; ++i) conflicts += conflicts_of(warp.accesses[i]);
  block.worker->counters.bank_conflicts += conflicts;
  warp.access_count = 0;
  ++warp.access_turn;
  const int first = static_cast<int>(warp.fibers - block.fibers);
  for (int i = first; i < first + kWarpSize && i < block.thread_count; ++i) block.fibers[i].next_access = 0;
}

int bank_conflicts(const uint32_t* units, int count, int banks) {
  uint32_t wanted = 0, twice = 0;
  for (int i = 0; i < count; ++i) {
    const uint32_t bank = uint32_t(1) << (units[i] & (banks - 1));
    twice |= wanted & bank;
    wanted |= bank;
  }
  return twice ? deepest_bank(units, count, banks) - 1 : 0;
}

TK_EXPORT void tk_rt_shared_access(const void* shared, int bytes, int line) {
  current_fiber().line = line;
  note_access(shared_offset(shared, bytes, line), bytes, line);
}
