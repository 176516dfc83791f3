// SPDX-License-Identifier: Apache-2.0
// Block barriers: __syncthreads() is barrier 0 for every thread of the block that has not returned.
#include <stdio.h>

#include "check.h"

namespace {

void describe_barrier(const Block& block, const Fiber& fiber, char* text, size_t bytes) {
  const Barrier& barrier = block.barriers[fiber.detail];
  const char* const verb = barrier.arrived == 1 ? "is" : "are";
  if (barrier.expected == 0) {
    snprintf(text, bytes, "in __syncthreads(), where %d of %d threads %s", barrier.arrived, block.alive, verb);
  } else {
    snprintf(text, bytes, "at barrier %u, where %d of %d threads %s", fiber.detail, barrier.arrived,
             barrier.expected, verb);
  }
}

const Wait kBarrierWait = {describe_barrier};

// Threads that have returned are done with everything too.
const uint32_t kAllWarps = ~uint32_t(0);

uint32_t warps_at(const Block& block, const Barrier& barrier) {
  uint32_t warps = 0;
  for (int i = 0; i < block.warp_count; ++i) warps |= static_cast<uint32_t>(barrier.waiting[i] != 0) << i;
  return warps;
}

// A fiber that waits at the barrier; nullptr if there is none.
const Fiber* anybody_at(const Block& block, const Barrier& barrier) {
  for (int i = 0; i < block.warp_count; ++i) {
    if (barrier.waiting[i]) return &block.warps[i].fibers[__builtin_ctz(barrier.waiting[i])];
  }
  return nullptr;
}

bool was_whole(const Checker& checks, int line) {
  for (int i = 0; i < checks.sync_line_count; ++i) {
    if (checks.sync_lines[i] == line) return true;
  }
  return false;
}

// The threads of a block must come to one __syncthreads(), the lanes of a warp to one barrier of any kind.
void require_same_line(const Block& block, const Barrier& barrier, const Fiber& fiber, int line) {
  const uint32_t lanes = barrier.waiting[fiber.index / kWarpSize];
  const Fiber* other = lanes ? &fiber.warp->fibers[__builtin_ctz(lanes)] : nullptr;
  if (other == nullptr && barrier.expected == 0) other = anybody_at(block, barrier);
  if (other == nullptr || other->line == line) return;
  report_unwritten_first();
  // if all threads have come to one of the two before, the other one is out of place; if to both, the one that comes a
  // second time without the other between
  const bool both = was_whole(*checker(), line) && was_whole(*checker(), other->line);
  const bool here = both ? line == checker()->last_sync_line : !was_whole(*checker(), line);
  {
    Critical guard;
    if (tk_error* error = claim_error(TK_DIVERGENCE, here ? line : other->line)) {
      attribute(*error, here ? fiber : *other);
      message_of(*error).print("the block has diverged: its threads come to different barriers");
      new_note(*error, line).print("thread %d comes to this one", fiber.index);
      new_note(*error, other->line).print("thread %d waits at this one", other->index);
      publish_error();
    }
  }
  leave_block();
}

// Remember a __syncthreads() that all threads have come to.
void note_whole(Checker& checks, int line) {
  checks.last_sync_line = line;
  if (was_whole(checks, line) || checks.sync_line_count == kSyncLines) return;
  checks.sync_lines[checks.sync_line_count++] = line;
}

void require_all(const Block& block, const Barrier& barrier) {
  if (barrier.expected || block.alive == block.thread_count) return;
  const Fiber* waits = anybody_at(block, barrier);
  fail(TK_DIVERGENCE, barrier.line,
       "the block has diverged: thread %d waits here for all, and %d threads have returned",
       waits ? waits->index : 0, block.thread_count - block.alive);
}

}  // namespace

void release_if_complete(Block& block, Barrier& barrier) {
  const int expected = barrier.expected ? barrier.expected : block.alive;
  if (barrier.arrived == 0 || barrier.arrived != expected) return;
  if (checker()) require_all(block, barrier);
  if (checker() && !barrier.expected) note_whole(*checker(), barrier.line);
  if (Checker* const c = checker()) order_barrier(*c, barrier.expected ? warps_at(block, barrier) : kAllWarps);
  for (int i = 0; i < block.warp_count; ++i) {
    block.warps[i].ready |= barrier.waiting[i];
    barrier.waiting[i] = 0;
  }
  if (&barrier == &block.barriers[0]) {
    block.predicate_result = block.predicates;
    block.predicates = 0;
  }
  barrier.arrived = 0;
  ++block.worker->counters.barriers;
}

TK_EXPORT void tk_rt_barrier(int id, int threads, int line) {
  Block& block = current_block();
  Fiber& fiber = current_fiber();
  fiber.line = line;
  if (id < 0 || id >= kBarriers) fail(TK_FAIL, line, "barrier %d: there are barriers 0 to %d", id, kBarriers - 1);
  if (threads < 0 || threads % kWarpSize) {
    fail(TK_DEADLOCK, line, "barrier %d: %d threads are no whole number of warps, for which it never opens", id, threads);
  }
  Barrier& barrier = block.barriers[id];
  const int warp = static_cast<int>(fiber.warp - block.warps);
  if (checker() && barrier.arrived) require_same_line(block, barrier, fiber, line);
  if (barrier.arrived && barrier.expected != threads) {
    fail(TK_DEADLOCK, line, "barrier %d for %d threads: others wait there, at line %d, for %d", id, threads,
         barrier.line, barrier.expected ? barrier.expected : block.alive);
  }
  barrier.expected = threads;
  barrier.line = line;
  ++barrier.arrived;
  barrier.waiting[warp] |= uint32_t(1) << fiber.lane;
  fiber.detail = id;
  // a fiber that waits is not ready; the one that completes the barrier never stopped being so
  release_if_complete(block, barrier);
  if (barrier.waiting[warp] >> fiber.lane & 1) {
    wait_for(block, fiber, kBarrierWait, line);
  } else {
    maybe_yield(block, fiber);
  }
}

TK_EXPORT int tk_rt_barrier_count(int predicate, int line) {
  Block& block = current_block();
  block.predicates += predicate != 0;
  tk_rt_barrier(0, 0, line);
  return block.predicate_result;
}
