// SPDX-License-Identifier: Apache-2.0
// Check mode: what it remembers of a launch, and what the rest of the runtime tells it.
//
// In check mode the compiler puts a call in front of every load and store of a kernel (-fsanitize=thread), and those
// calls end here instead of in the compiler's own library. The parts are:
//
//   check_hooks.cpp     where the calls of the compiler and of the tk:: functions end
//   check_order.cpp     who is known to be done with what: clocks of warps and of blocks
//   check_shared.cpp    who wrote and read each byte of shared memory last
//   check_global.cpp    the same of the tensors that a kernel writes, and the bounds of all
//   check_report.cpp    what is wrong, in words: the two accesses, and what is missing
//
// A warp has a clock. It ticks at each barrier and each __syncwarp of the warp, and every access is stamped with it.
// What lanes of one warp do at the same tick is in no order. Nor do the shuffles, votes and matrix instructions order
// it that exchange registers between them: PTX promises no order of memory there. Each warp knows, for every other one,
// the tick up to which that one is done; a barrier makes those who take part know all that any of them knew.
#pragma once
#include "machine.h"
#include "report.h"

// A place in a kernel: a line of source.cu, if its highest bit is set, else an address in the library; 0 is unknown.
using Site = uint32_t;
inline Site site_of_line(int line) { return line > 0 ? uint32_t(1) << 31 | static_cast<uint32_t>(line) : 0; }

enum Verb : uint8_t { kReads, kWrites, kCopies, kLoadsMatrix, kStoresMatrix };

enum : uint8_t { kWholeWarp = 32, kManyLanes = 33 };  // instead of a lane

// Who accesses memory: one thread, or a warp as a whole, whose instruction names `thread` as the one with the address.
struct Actor {
  uint16_t thread;
  uint8_t warp, lane;
};

// An access that was made: of which thread of which block (by its number in the grid), where, and how.
struct Access {
  uint64_t block;
  int32_t thread;
  Site site;
  Verb verb;
};

enum class Missing : uint8_t {
  kSync,         // a barrier between two warps
  kSyncWarp,     // or one within a warp
  kSyncAfterWait,  // the copy was waited for, but by another thread
  kWait,         // nobody has waited for the copy
  kWaitAndSync,
  kSyncBeforeCopy,  // a buffer is filled again while it is read
  kSemaphore,
};

// Two accesses to the same bytes that nothing orders.
struct Conflict {
  Access first, second;
  Missing missing;
  bool under_way;           // `first` is a copy that has not landed
  const uint8_t* address;   // where they meet
  int32_t bytes;
};

struct SharedShadow;
struct GlobalShadow;

// What one block has released, as others know it: all that it did before its `count`-th release is done.
struct Released {
  uint64_t block;
  uint32_t count;
};

// A list of these, ordered by block.
struct BlockClock {
  Released* at;
  int32_t count, capacity;
};

// A write whose conflict is another one, or none, if it wrote what is there already. Whether it did is seen when the
// write has happened, at the next call from the kernel.
struct Suspect {
  uint8_t before[16];
  Conflict conflict;
};

// The first read of memory that nobody had written. Of shared memory it is told when the block ends, of a tensor when the
// launch does, or at once if something goes wrong because of it: if somebody writes there meanwhile, the two race, and
// the reader only came first.
struct Unwritten {
  const uint8_t* address;  // nullptr: there is none
  Access access;
};

enum { kSyncLines = 64, kSuspects = 16 };

// The check state of one worker.
struct Checker {
  Worker* worker;
  GlobalShadow* global;
  SharedShadow* shared;
  const uint8_t *stacks, *shared_begin;
  size_t stacks_bytes;
  uint32_t shared_bytes;
  int32_t warps;
  uint64_t block;                          // that it runs now
  uint32_t clock[kMaxWarps];               // of each warp, from 1 on
  uint32_t known[kMaxWarps][kMaxWarps];    // [w][v]: the last tick of v that is done for w
  uint32_t releases;                       // of semaphores by this block
  BlockClock blocks;                       // what it knows of others
  BlockClock acquired;                     // what it will know after the barrier that ends a lock
  BlockClock released;                     // what its latest release hands on
  uint32_t releases_of[kMaxWarps * kWarpSize];  // by thread: how often it has been in a release
  int32_t tensor;                          // that was accessed last
  Suspect suspects[kSuspects];             // the parts of one write
  int32_t suspect_count;
  Unwritten unwritten, unwritten_global;
  Conflict same_value;                     // the first in which two blocks wrote the same; 0 bytes: there is none
  int32_t sync_lines[kSyncLines], sync_line_count;  // of __syncthreads() to which all threads have come
  int32_t last_sync_line;                           // the latest of them
};

// The checker of this OS thread's launch; nullptr if it does not check.
inline Checker* checker() { return tk_worker->checker; }

inline Actor actor_of(const Fiber& fiber) {
  return {fiber.index, static_cast<uint8_t>(fiber.index / kWarpSize), fiber.lane};
}
inline Actor warp_of(const Fiber& fiber) {
  return {fiber.index, static_cast<uint8_t>(fiber.index / kWarpSize), kWholeWarp};
}

// ------------------------------------------------------------------------------------------------- check_order.cpp

void order_begin_block(Checker& checker, uint64_t block);
// The warps of this mask have waited for each other.
void order_barrier(Checker& checker, uint32_t warps);
inline void order_warp(Checker& checker, int warp) { checker.known[warp][warp] = checker.clock[warp]++; }
// A thread has seen the semaphore's value, and its block goes on once all are past the barrier behind that.
void order_acquire(Checker& checker, const void* semaphore);
void order_acquired(Checker& checker);
// The first thread past the barrier of a release closes what it hands on; thread 0 then gives it to the semaphore.
void order_close_release(Checker& checker, int thread);
void order_release(Checker& checker, const void* semaphore);
// How many releases of a block are known to this one.
uint32_t order_known_releases(const Checker& checker, uint64_t block);
void order_free(BlockClock& clock);
void order_copy(BlockClock& to, const BlockClock& from);
void order_merge(BlockClock& to, const BlockClock& from);

// Whether what `warp` of the same block did at `tick` is done for the actor; its own thread's always is.
inline bool is_done(const Checker& checker, Actor actor, int warp, uint32_t tick) {
  return tick <= checker.known[actor.warp][warp];
}

// ------------------------------------------------------------------------------------------------ check_shared.cpp

void shared_begin_block(Checker& checker);
void shared_read(Checker& checker, Actor actor, uint32_t offset, int bytes, Site site, Verb verb);
// `value`: what is written, if that is known.
void shared_write(Checker& checker, Actor actor, uint32_t offset, int bytes, Site site, Verb verb, const void* value);
// A copy begins, after which nobody may touch its destination, until it lands.
void shared_copy_begins(Checker& checker, Actor actor, uint32_t offset, int bytes, Site site);
void shared_copy_lands(Checker& checker, Actor actor, uint32_t offset, int bytes, Site site);
SharedShadow* shared_new(uint32_t bytes, int warps);  // nullptr if there is no memory
void shared_free(SharedShadow* shadow);
bool shared_fits(const SharedShadow& shadow, uint32_t bytes, int warps);
// The access of a tk:: function must stay within the tensor that its line is about.
void shared_require_inside(const Checker& checker, uint32_t offset, int bytes, int line);

// ------------------------------------------------------------------------------------------------ check_global.cpp

GlobalShadow* global_new(const tk_launch& request);
void global_free(GlobalShadow* shadow);
// An access outside of shared memory and the stacks: refused beside a tensor.
void global_read(Checker& checker, Actor actor, const void* address, int bytes, Site site, Verb verb);
// `value`: what is written, and then this does it, so that no other worker is between; nullptr if that is not known.
void global_write(Checker& checker, Actor actor, const void* address, int bytes, Site site, const void* value);
// A semaphore is waited for, which must hold something and lie within a tensor; or it is set, and holds something then.
// It races with nobody.
void global_look_at_semaphore(Checker& checker, Actor actor, const int32_t* semaphore, Site site);
void global_set_semaphore(Checker& checker, Actor actor, const int32_t* semaphore, Site site);
// The order in which a semaphore was handed on; `handed` is filled.
void global_hand_over(GlobalShadow& shadow, const void* semaphore, const BlockClock& clock);
void global_take_over(GlobalShadow& shadow, const void* semaphore, BlockClock& clock);

// ------------------------------------------------------------------------------------------------ check_report.cpp

[[noreturn]] void report_conflict(const Checker& checker, const Conflict& conflict);
// A conflict of two writes of which the second may only have repeated the first, which is known once it has happened.
void suspect(Checker& checker, const Conflict& conflict);
void settle_suspects(Checker& checker);
// Two writes of the same value conflict: threads of one block may do that. Of two blocks the result is right as it is,
// so it is told when the launch has ended and nothing else was wrong.
void repeated(Checker& checker, const Conflict& conflict);
void describe_same_value(const Checker& checker, tk_error& error);
// Report the read of nothing that is still open, if there is one, before anything that may follow from it.
void report_unwritten_first();
[[noreturn]] void report_unwritten(const Checker& checker, const Unwritten& unwritten);
void describe_unwritten(const Checker& checker, tk_error& error, const Unwritten& unwritten);
[[noreturn]] void report_global_bounds(const Checker& checker, const Access& access, const void* address, int bytes);
// `buffer`: the tensor that was meant.
[[noreturn]] void report_shared_bounds(const Checker& checker, const Access& access, int buffer, uint32_t offset,
                                       int bytes);
[[noreturn]] void fail_at(tk_kind kind, Site site, const char* format, ...) __attribute__((format(printf, 3, 4)));

inline Access access_now(const Checker& checker, Actor actor, Site site, Verb verb) {
  return {checker.block, actor.thread, site, verb};
}

// ------------------------------------------------------------------------------------------------------ check.cpp

// Have a checker for the launch; false if there is no memory.
bool equip_checker(Worker& worker, GlobalShadow* global);
