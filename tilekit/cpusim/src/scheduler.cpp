// SPDX-License-Identifier: Apache-2.0
// Which fiber runs next, and what to say when none can.
#include "check.h"
#include "fiber.h"

extern "C" {
__attribute__((visibility("default"))) __thread tk_thread* tk_current;
}
__thread Worker* tk_worker;

namespace {

enum { kOthers = 4 };  // blocks that are told of one by one

uint32_t next_random(Block& block) {  // xorshift64
  block.random ^= block.random << 13;
  block.random ^= block.random >> 7;
  block.random ^= block.random << 17;
  return static_cast<uint32_t>(block.random >> 20);
}

Fiber* first_ready(Warp& warp) { return &warp.fibers[__builtin_ctz(warp.ready)]; }

Fiber* any_ready(Block& block) {
  const uint32_t offset = next_random(block);
  for (int i = 0; i < block.warp_count; ++i) {
    Warp& warp = block.warps[(offset + i) % block.warp_count];
    if (!warp.ready) continue;
    const int turn = next_random(block) % kWarpSize;
    const uint32_t turned = warp.ready >> turn | (turn ? warp.ready << (kWarpSize - turn) : 0);
    return &warp.fibers[(__builtin_ctz(turned) + turn) % kWarpSize];
  }
  return nullptr;
}

// The next lane of a warp after the fiber's; some lane must be ready.
inline Fiber& next_lane(const Warp& warp, const Fiber& fiber) {
  const uint32_t above = warp.ready & (~uint32_t(1) << fiber.lane);
  return warp.fibers[__builtin_ctz(above ? above : warp.ready)];
}

// The next lane of the fiber's own warp, else the first of the next warp: a warp stays together, as on a GPU.
Fiber* next_ready(Block& block, const Fiber& fiber) {
  if (block.shuffled) return any_ready(block);
  Warp* const own = fiber.warp;
  if (own->ready) return &next_lane(*own, fiber);
  Warp* const end = block.warps + block.warp_count;
  for (Warp* warp = own + 1; warp < end; ++warp) {
    if (warp->ready) return first_ready(*warp);
  }
  for (Warp* warp = block.warps; warp < own; ++warp) {
    if (warp->ready) return first_ready(*warp);
  }
  return nullptr;
}

int count_of(const bool* member, int count) {
  int members = 0;
  for (int i = 0; i < count; ++i) members += member[i];
  return members;
}

// One note for each group of threads that wait for the same thing at the same line.
void describe_waiting(const Block& block, tk_error& error) {
  bool told[kMaxWarps * kWarpSize] = {};
  for (int i = 0; i < block.thread_count; ++i) {
    const Fiber& leader = block.fibers[i];
    if (told[i] || leader.returned) continue;
    bool member[kMaxWarps * kWarpSize] = {};
    for (int k = i; k < block.thread_count; ++k) {
      const Fiber& other = block.fibers[k];
      member[k] = !other.returned && other.wait == leader.wait && other.line == leader.line &&
                  other.detail == leader.detail;
      told[k] |= member[k];
    }
    char what[TK_NOTE_BYTES];
    leader.wait->describe(block, leader, what, sizeof what);
    Text note = new_note(error, leader.line);
    note.print(count_of(member, block.thread_count) == 1 ? "thread " : "threads ");
    print_ranges(note, member, block.thread_count);
    note.print(count_of(member, block.thread_count) == 1 ? " waits %s" : " wait %s", what);
    if (error.line == 0) error.line = leader.line;
  }
  bool returned[kMaxWarps * kWarpSize];
  for (int i = 0; i < block.thread_count; ++i) returned[i] = block.fibers[i].returned;
  if (const int count = count_of(returned, block.thread_count)) {
    Text note = new_note(error, 0);
    note.print(count == 1 ? "thread " : "threads ");
    print_ranges(note, returned, block.thread_count);
    note.print(count == 1 ? " has returned from the kernel" : " have returned from the kernel");
  }
}

// The error is about this semaphore.
void name_semaphore(tk_error& error, const int32_t* semaphore) {
  const tk_launch& request = *tk_worker->launch->request;
  error.tensor = tensor_at(request, semaphore);
  if (error.tensor < 0) return;
  error.byte_offset = reinterpret_cast<const uint8_t*>(semaphore) - request.tensor[error.tensor].begin;
}

// The blocks that wait for a semaphore as well, the first few one by one.
void describe_other_blocks(tk_error& error) {
  const Launch& launch = *tk_worker->launch;
  int others = 0;
  for (int i = 0; i < launch.worker_count; ++i) {
    const Block& other = launch.workers[i]->block;
    if (launch.workers[i] == tk_worker || !other.alive || ++others > kOthers) continue;
    const Fiber& waits = other.fibers[0];
    char what[TK_NOTE_BYTES];
    kSemaphoreWait.describe(other, waits, what, sizeof what);
    new_note(error, waits.line).print("block (%u, %u, %u) waits %s", waits.block_idx.x, waits.block_idx.y,
                                      waits.block_idx.z, what);
  }
  if (others == kOthers + 1) new_note(error, 0).print("another block waits as well");
  if (others > kOthers + 1) new_note(error, 0).print("%d more blocks wait as well", others - kOthers);
  const uint64_t begun = launch.next_block.load();
  if (begun >= launch.block_count) return;
  const auto missing = static_cast<unsigned long long>(launch.block_count - begun);
  new_note(error, 0).print("%llu %s not begun: no more than %d fit into the simulator at a time", missing,
                           missing == 1 ? "block has" : "blocks have", launch.worker_count);
}

bool any_collective_open(const Block& block) {
  for (int i = 0; i < block.warp_count; ++i) {
    if (block.warps[i].open) return true;
  }
  return false;
}

// Make the fibers that poll ready to look again; whether there are any.
bool wake_pollers(Block& block) {
  bool any = false;
  for (int i = 0; i < block.warp_count; ++i) {
    Warp& warp = block.warps[i];
    any |= warp.polling != 0;
    warp.ready |= warp.polling;
    warp.polling = 0;
  }
  return any;
}

// The next fiber to run, perhaps after others have done what it waits for.
Fiber& next_fiber(Block& block, const Fiber& fiber) {
  if (Fiber* const next = next_ready(block, fiber)) return *next;
  if (!wake_pollers(block)) report_deadlock(block);
  rest(*block.worker);
  return *next_ready(block, fiber);
}

void switch_from(Block& block, Fiber& fiber) {
  if (Checker* const c = checker()) {
    if (__builtin_expect(c->suspect_count, 0)) settle_suspects(*c);
  }
  const Warp& own = *fiber.warp;  // the usual case first: most of a simulation is switches within a warp
  Fiber* const next = own.ready && !block.shuffled ? &next_lane(own, fiber) : &next_fiber(block, fiber);
  if (next == &fiber) return;
  ++block.worker->counters.switches;
  tk_current = next;
  tk_switch(&fiber.sp, next->sp);
}

}  // namespace

void report_deadlock(const Block& block) {
  report_unwritten_first();
  // lanes that wait for others of their warp were left by them: check mode says that, and not what came of it
  const bool diverged = checker() && any_collective_open(block);
  {
    Critical guard;
    if (tk_error* error = claim_error(diverged ? TK_DIVERGENCE : TK_DEADLOCK, 0)) {
      const tk_dim3 at = block.fibers[0].block_idx;
      error->block = at;
      message_of(*error).print("%s: no thread of block (%u, %u, %u) can go on",
                               diverged ? "lanes of a warp do not come together" : "deadlock", at.x, at.y, at.z);
      describe_waiting(block, *error);
      if (block.fibers[0].wait == &kSemaphoreWait) name_semaphore(*error, block.fibers[0].semaphore);
      if (tk_worker->launch->stuck.load()) describe_other_blocks(*error);
      publish_error();
    }
  }
  leave_block();
}

void wait_for(Block& block, Fiber& fiber, const Wait& wait, int line) {
  fiber.wait = &wait;
  fiber.line = line;
  fiber.warp->ready &= ~(uint32_t(1) << fiber.lane);
  switch_from(block, fiber);
  fiber.wait = nullptr;
}

void poll_later(Block& block, Fiber& fiber, const Wait& wait, int line) {
  fiber.warp->polling |= uint32_t(1) << fiber.lane;
  wait_for(block, fiber, wait, line);
}

void yield(Block& block, Fiber& fiber) { switch_from(block, fiber); }

void maybe_yield(Block& block, Fiber& fiber) {
  if (__builtin_expect(block.shuffled, 0)) switch_from(block, fiber);
}

void finish_fiber(Block& block, Fiber& fiber) {
  const uint32_t lane = uint32_t(1) << fiber.lane;
  fiber.returned = true;
  fiber.warp->ready &= ~lane;
  fiber.warp->alive &= ~lane;
  --block.alive;
  if (Checker* const c = checker()) {
    if (c->suspect_count) settle_suspects(*c);
  }
  finish_copies(fiber);
  // who waited for this thread no longer does
  complete_collectives(block, *fiber.warp);
  release_if_complete(block, block.barriers[0]);
  if (fiber.warp->alive == 0) close_accesses(block, *fiber.warp);
  if (block.alive == 0) {
    if (checker() && checker()->unwritten.address) report_unwritten(*checker(), checker()->unwritten);
    leave_block();
  }
  Fiber* const next = &next_fiber(block, fiber);
  tk_current = next;
  void* unused;
  tk_switch(&unused, next->sp);
  __builtin_unreachable();
}

void leave_block() {
  void* unused;
  tk_switch(&unused, tk_worker->main_sp);
  __builtin_unreachable();
}
