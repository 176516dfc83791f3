// SPDX-License-Identifier: Apache-2.0
// Warp collectives: the last lane to arrive does the work of all.
#include <stdio.h>

#include "check.h"

namespace {

Collective* find(Warp& warp, const Fiber& fiber) {
  for (Collective& c : warp.collectives) {
    if (c.arrived >> fiber.lane & 1) return &c;
  }
  return nullptr;
}

void describe_collective(const Block&, const Fiber& fiber, char* text, size_t bytes) {
  const Collective* c = find(*fiber.warp, fiber);
  snprintf(text, bytes, "in %s for the other lanes of their warp", c ? c->name : "a warp collective");
}

const Wait kCollectiveWait = {describe_collective};

// Lanes that a mask names must all come, to one place, unless the whole warp has long returned.
void require_together(const Collective& c) {
  if (c.other_line) {
    fail(TK_DIVERGENCE, c.other_line, "the warp has diverged: lanes come to %s here, and others to that of line %d",
         c.name, c.line);
  }
  if (c.arrived != c.mask && c.mask == kAllLanes) {
    fail(TK_DIVERGENCE, c.line, "the warp has diverged: %s is for all its lanes, and %d of them have returned", c.name,
         kWarpSize - __builtin_popcount(c.arrived));
  }
}

void complete(Block& block, Warp& warp, Collective& c) {
  if (checker() && block.thread_count % kWarpSize == 0) require_together(c);
  c.run(c);
  ++block.worker->counters.collectives;
  warp.ready |= c.arrived;
  c.arrived = 0;
  --warp.open;
}

// The collective that lanes of the same mask have begun, or a free one.
Collective& open(Warp& warp, uint32_t mask, int line) {
  for (Collective& c : warp.collectives) {
    if (c.arrived && c.mask == mask) return c;
  }
  for (Collective& c : warp.collectives) {
    if (!c.arrived) return c;
  }
  fail(TK_DIVERGENCE, line, "the lanes of this warp are in more than %d different collectives", kCollectives);
}

[[noreturn]] void report_divergence(const Fiber& fiber, const Collective& there, const char* name, int line) {
  {
    Critical guard;
    if (tk_error* error = claim_error(TK_DIVERGENCE, line)) {
      const int other = __builtin_ctz(there.arrived);
      attribute(*error, fiber);
      message_of(*error).print("the warp has diverged: its lanes are at different collectives");
      new_note(*error, line).print("lane %d (thread %d) executes %s", fiber.lane, fiber.index, name);
      new_note(*error, there.line)
          .print("lane %d (thread %d) waits in %s", other, fiber.index - fiber.lane + other, there.name);
      publish_error();
    }
  }
  leave_block();
}

}  // namespace

uint64_t collective(uint32_t mask, const char* name, int line, void (*run)(Collective&), int kind, int width,
                    uint64_t value, int32_t operand) {
  Block& block = current_block();
  Fiber& fiber = current_fiber();
  Warp& warp = *fiber.warp;
  Collective& c = open(warp, mask, line);
  fiber.line = line;
  if (!(mask >> fiber.lane & 1)) {
    fail(TK_DIVERGENCE, line, "%s: lane %d is not in its own mask %#x", name, fiber.lane, mask);
  }
  if (!c.arrived) {
    ++warp.open;
    c.mask = mask;
    c.name = name;
    c.line = line;
    c.other_line = 0;
    c.run = run;
    c.kind = kind;
    c.width = width;
  } else if (c.run != run || c.kind != kind || c.width != width) {
    report_divergence(fiber, c, name, line);
  }
  if (c.line != line) c.other_line = line;
  c.value[fiber.lane] = value;
  c.operand[fiber.lane] = operand;
  c.arrived |= uint32_t(1) << fiber.lane;
  if (c.arrived == (mask & warp.alive)) {
    complete(block, warp, c);
    maybe_yield(block, fiber);
  } else {
    wait_for(block, fiber, kCollectiveWait, line);
  }
  return c.result[fiber.lane];
}

void require_whole_warp(const Collective& c) {
  if (c.arrived == kAllLanes) return;
  fail(TK_DIVERGENCE, c.line, "%s takes all 32 lanes of a warp, and only %d are left", c.name,
       __builtin_popcount(c.arrived));
}

namespace {

template <class PerLane>
void for_each_lane(uint32_t lanes, PerLane per_lane) {
  for (; lanes; lanes &= lanes - 1) per_lane(__builtin_ctz(lanes));
}

// Of all collectives this one alone orders accesses to memory.
void run_syncwarp(Collective&) {
  if (Checker* const c = checker()) order_warp(*c, current_fiber().index / kWarpSize);
}

void run_ballot(Collective& c) {
  uint32_t votes = 0;
  for_each_lane(c.arrived, [&](int lane) { votes |= static_cast<uint32_t>(c.value[lane] != 0) << lane; });
  for_each_lane(c.arrived, [&](int lane) { c.result[lane] = votes; });
}

// The rules of PTX's shfl.sync: lanes are cut into groups of `width`; who names a lane outside keeps its own value.
void run_shuffle(Collective& c) {
  for_each_lane(c.arrived, [&](int lane) {
    const int begin = lane & -c.width, end = begin + c.width, by = c.operand[lane];
    int from = lane;
    switch (c.kind) {
      case TK_SHUFFLE_IDX: from = begin + (by & (c.width - 1)); break;
      case TK_SHUFFLE_UP: from = lane - (by & (kWarpSize - 1)); break;
      case TK_SHUFFLE_DOWN: from = lane + (by & (kWarpSize - 1)); break;
      case TK_SHUFFLE_XOR: from = lane ^ (by & (kWarpSize - 1)); break;
    }
    // xor may reach back into an earlier group, but not forward: so does the hardware
    const bool outside = from >= end || (from < begin && c.kind == TK_SHUFFLE_UP);
    const int source = outside ? lane : from;
    c.result[lane] = c.arrived >> source & 1 ? c.value[source] : ~uint64_t(0);  // undefined on a GPU: let it be seen
  });
}

const char* shuffle_name(int kind) {
  switch (kind) {
    case TK_SHUFFLE_IDX: return "shfl_idx";
    case TK_SHUFFLE_UP: return "shfl_up";
    case TK_SHUFFLE_DOWN: return "shfl_down";
    default: return "shfl_xor";
  }
}

}  // namespace

void complete_collectives(Block& block, Warp& warp) {
  if (!warp.open) return;
  for (Collective& c : warp.collectives) {
    if (c.arrived && c.arrived == (c.mask & warp.alive)) complete(block, warp, c);
  }
}

TK_EXPORT void tk_rt_syncwarp(uint32_t mask, int line) {
  collective(mask, "__syncwarp", line, run_syncwarp, 0, 0, 0, 0);
}

TK_EXPORT uint64_t tk_rt_shuffle(int kind, uint32_t mask, uint64_t value, int lane, int width, int line) {
  if (width < 1 || width > kWarpSize || (width & (width - 1))) {
    fail(TK_FAIL, line, "%s: width %d is not a power of two up to 32", shuffle_name(kind), width);
  }
  return collective(mask, shuffle_name(kind), line, run_shuffle, kind, width, value, lane);
}

TK_EXPORT uint32_t tk_rt_ballot(uint32_t mask, int predicate, int line) {
  return static_cast<uint32_t>(collective(mask, "ballot", line, run_ballot, 0, 0, predicate != 0, 0));
}
