// SPDX-License-Identifier: Apache-2.0
// The emulated machine: what a launch, an OS thread, a block, a warp and a CUDA thread are here.
//
// A CUDA thread is a Fiber. A block is run by one OS thread (a Worker) from its first instruction to its last, and one
// fiber runs at a time, so nothing in a block needs a lock. A fiber runs until it must wait for others (a barrier, a
// warp collective, a semaphore) or returns; then the scheduler picks another of its block. Blocks are handed out to the
// workers.
#pragma once
#include <pthread.h>
#include <semaphore.h>

#include <atomic>

#include <tk/cpu/abi.h>

#define TK_EXPORT extern "C" __attribute__((visibility("default")))

enum { kWarpSize = 32, kMaxWarps = 32, kBarriers = 16, kCollectives = 4, kOpenAccesses = 64, kHeld = 16 };
const size_t kScratchBytes = 48 * 1024;  // of a worker, for matrices
const uint32_t kAllLanes = ~uint32_t(0);
const uint8_t kSharedFill = 0xff;  // NaN as any float: a value that was never written is seen in the result

struct Block;
struct Checker;
struct Fiber;
struct GlobalShadow;
struct Warp;
struct Worker;

// What a fiber waits for. `describe` writes it as the end of "threads 0-31 ...", for a deadlock report.
struct Wait {
  void (*describe)(const Block&, const Fiber&, char* text, size_t bytes);
};

// A cp.async that has not been waited for.
struct Copy {
  uint8_t* to;
  const uint8_t* from;
  bool zeros;  // instead of what is there
  int32_t bytes, line;
  uint32_t group;
};

// The copies of a thread, in order: those from `first` to `count` are under way.
struct Copies {
  Copy* copy;
  int32_t first, count, capacity;
  uint32_t group;  // that the next copy will belong to
};

// Two cache lines: what a switch touches decides how fast a simulation is.
struct alignas(64) Fiber : tk_thread {
  void* sp;
  Warp* warp;
  const Wait* wait;  // nullptr while it may run
  int32_t line;      // of the tk:: call that it made last
  uint32_t detail;   // what exactly it waits for: the barrier's number, the semaphore's value
  const int32_t* semaphore;
  Copies copies;
  int32_t next_access;  // the first of its warp's accesses that its next one may be part of
  uint16_t index;    // in its block
  uint8_t lane;
  bool returned;
};
static_assert(sizeof(Fiber) == 128);

// A collective operation of a warp. Each lane leaves its operand and waits; the last to arrive does the whole work.
struct Collective {
  uint32_t mask, arrived;  // the lanes that must take part, and those that are there
  const char* name;
  int32_t line, other_line;  // of the first lane; of one that came from another line, 0 if none did
  void (*run)(Collective&);
  int32_t kind, width;
  uint64_t value[kWarpSize];
  int32_t operand[kWarpSize];
  uint64_t result[kWarpSize];
};

// One access of shared memory by lanes of a warp, told by its line and by how often they came there.
struct SharedAccess {
  int32_t line, bytes;
  uint32_t lanes, offset[kWarpSize];
};

struct Warp {
  uint32_t ready, alive;  // lanes that may run; lanes that have not returned
  uint32_t polling;       // lanes that look again whether they may run, once no other can
  int32_t open;           // collectives that lanes wait in
  Fiber* fibers;
  Collective collectives[kCollectives];  // several, because parts of a warp may be in different ones
  SharedAccess accesses[kOpenAccesses];  // that some lanes have made and others may still make
  int32_t access_count;
  uint32_t access_turn;  // counts how often they were closed
};

struct Barrier {
  int32_t expected;  // threads; 0: all of the block that have not returned
  int32_t arrived, line;
  uint32_t waiting[kMaxWarps];
};

struct Block {
  Worker* worker;
  Fiber* fibers;
  Warp* warps;
  int32_t thread_count, warp_count, alive;
  uint32_t shared_bytes;
  Barrier barriers[kBarriers];
  int32_t predicates, predicate_result;  // __syncthreads_count: so far, and of the last one
  const int32_t* held[kHeld];  // semaphores that it has locked and not released since, as many as there is room for
  int32_t held_count;
  bool shuffled;  // threads run in an order drawn from `random`
  uint64_t random;
};

// A launch, shared by its workers and the thread that watches over it.
struct Launch {
  const tk_launch* request;
  tk_result* result;
  uint64_t block_count, stride, start;   // the i-th block to run is number (start + i * stride) % block_count of them
  std::atomic<uint64_t> next_block;
  int worker_count;
  std::atomic<int> running;              // workers that have not finished
  std::atomic<int> idle;                 // workers among them whose block can do nothing but poll, for some time now
  std::atomic<uint64_t> polls_answered;  // how often one of them could go on
  std::atomic<int> stuck;                // this many blocks run, all poll, and nobody is left to give an answer
  const Worker* blamed;                  // then the one whose block is told of
  Worker* const* workers;
  std::atomic<int> error_claimed;        // the first error is the one that is told
  std::atomic<int> stop;                 // TK_TIMEOUT or TK_INTERRUPTED once the launch must end
  GlobalShadow* global_shadow;           // in check mode
  int event;                             // written to when something happened that the watching thread must see
};

// Something that a signal handler saw; told afterwards, outside of the handler.
struct Fault {
  int signal;
  int code;  // why
  const uint8_t *pc, *sp, *address;
};

struct Worker {
  pthread_t os_thread;
  sem_t wake;
  Launch* launch;
  Block block;
  void* main_sp;  // where to continue once the block has ended
  uint8_t* stacks;
  size_t stack_count;
  uint8_t *shared_pages, *shared_end;  // pages against a guard
  uint8_t* shared_begin;               // of this launch's shared memory, at their end
  uint8_t* signal_stack;
  uint8_t* fault_stack;  // a faulting fiber's own stack may be what is broken
  Fault fault;
  volatile int critical;          // > 0: holds a lock or writes a report, must not be torn away
  volatile int stop_requested;    // while it was critical
  int unanswered;                 // polls since its block could do anything else
  std::atomic<uint64_t> polls;
  uint8_t* scratch;               // kScratchBytes
  Checker *checker, *spare_checker;  // of a launch in check mode; what is kept for the next one
  tk_counters counters;
};

// The worker that this OS thread is.
extern __thread Worker* tk_worker __attribute__((tls_model("initial-exec")));

inline Fiber& current_fiber() { return *static_cast<Fiber*>(tk_current); }
inline Block& current_block() { return tk_worker->block; }

// To wait for a semaphore (polling.cpp).
extern const Wait kSemaphoreWait;

// --------------------------------------------------------------------------------------------------- scheduler.cpp

// Let others run until `fiber`, the current one, has been woken.
void wait_for(Block& block, Fiber& fiber, const Wait& wait, int line);
// As wait_for, but to look again once no other fiber of the block can run.
void poll_later(Block& block, Fiber& fiber, const Wait& wait, int line);
// Let every other fiber that can run do so first.
void yield(Block& block, Fiber& fiber);
// With a shuffled order every collective is a chance for others to run first.
void maybe_yield(Block& block, Fiber& fiber);
// The current fiber has returned from the kernel.
[[noreturn]] void finish_fiber(Block& block, Fiber& fiber);
// No fiber of the current block can go on.
[[noreturn]] void report_deadlock(const Block& block);
// Give up the current block, whatever its fibers do.
[[noreturn]] void leave_block();

// ------------------------------------------------------------------------------------------------------ polling.cpp

// No fiber of the worker's block could run: give the CPU away for a moment. Does not return if the launch is stuck.
void rest(Worker& worker);
// One of them can go on.
void poll_answered(Worker& worker);
// Of blocks that all wait, the one to tell of: from a block that waits for a semaphore to the one that holds it, and on,
// up to one that waits for nobody who is there.
const Worker* find_blamed(const Launch& launch);

// --------------------------------------------------------------------------------------------------------- warp.cpp

// Take part in a collective of the lanes in `mask` and return this lane's result. `kind` and `width` must be the same
// in all lanes, `value` and `operand` are each lane's own.
uint64_t collective(uint32_t mask, const char* name, int line, void (*run)(Collective&), int kind, int width,
                    uint64_t value, int32_t operand);
// For the `run` of a collective that a GPU defines for whole warps only.
void require_whole_warp(const Collective& collective);

// Called when `warp` has lost a lane: the collectives may now be complete.
void complete_collectives(Block& block, Warp& warp);

// ------------------------------------------------------------------------------------------------------ barrier.cpp

void release_if_complete(Block& block, Barrier& barrier);

// ------------------------------------------------------------------------------------------------------- shared.cpp

// Report an access of `bytes` bytes that shared_offset() refuses.
[[noreturn]] void fail_shared_access(int64_t offset, int bytes, int line);

// Where in shared memory `bytes` bytes lie, which must begin at a multiple of their number, a power of two.
inline uint32_t shared_offset(const void* address, int bytes, int line) {
  const int64_t offset = static_cast<const uint8_t*>(address) - tk_current->shared;
  const bool inside = offset >= 0 && offset + bytes <= current_block().shared_bytes;
  if (__builtin_expect(!inside || (offset & (bytes - 1)), 0)) fail_shared_access(offset, bytes, line);
  return static_cast<uint32_t>(offset);
}

// Note an access of the current fiber, for the count of bank conflicts.
void note_access(uint32_t offset, int bytes, int line);
// Count the accesses that are still open.
void close_accesses(Block& block, Warp& warp);
// How often `count` lanes, each accessing the aligned unit of memory with such a number, must wait for each other if
// there are `banks` banks of that width, a power of two: as often as the fullest bank has different units, less one.
int bank_conflicts(const uint32_t* units, int count, int banks);

// -------------------------------------------------------------------------------------------------------- async.cpp

void finish_copies(Fiber& fiber);

// ------------------------------------------------------------------------------------------------------- faults.cpp

void install_signal_handlers();
