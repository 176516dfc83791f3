// SPDX-License-Identifier: Apache-2.0
// The emulated machine: what a launch, an OS thread, a block, a warp and a CUDA thread are here.
//
// A CUDA thread is a Fiber. A block is run by one OS thread (a Worker) from its first instruction to its last, and one
// fiber runs at a time, so nothing in a block needs a lock. A fiber runs until it must wait for others (a barrier, a
// warp collective) or returns; then the scheduler picks another of its block. Blocks are handed out to the workers.
#pragma once
#include <pthread.h>
#include <semaphore.h>

#include <atomic>

#include <tk/cpu/abi.h>

#define TK_EXPORT extern "C" __attribute__((visibility("default")))

enum { kWarpSize = 32, kMaxWarps = 32, kBarriers = 16, kCollectives = 4 };

struct Block;
struct Fiber;
struct Warp;
struct Worker;

// What a fiber waits for. `describe` writes it as the end of "threads 0-31 ...", for a deadlock report.
struct Wait {
  void (*describe)(const Block&, const Fiber&, char* text, size_t bytes);
};

struct Fiber : tk_thread {
  void* sp;
  uint8_t* stack_top;
  Warp* warp;
  const Wait* wait;  // nullptr while it may run
  int32_t line;      // of the tk:: call that it made last
  uint32_t detail;   // what exactly it waits for: the barrier's number
  uint16_t index;    // in its block
  uint8_t lane;
  bool returned;
};

// A collective operation of a warp. Each lane leaves its operand and waits; the last to arrive does the whole work.
struct Collective {
  uint32_t mask, arrived;  // the lanes that must take part, and those that are there
  const char* name;
  int32_t line;
  void (*run)(Collective&);
  int32_t kind, width;
  uint64_t value[kWarpSize];
  int32_t operand[kWarpSize];
  uint64_t result[kWarpSize];
};

struct Warp {
  uint32_t ready, alive;  // lanes that may run; lanes that have not returned
  int32_t open;           // collectives that lanes wait in
  Fiber* fibers;
  Collective collectives[kCollectives];  // several, because parts of a warp may be in different ones
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
  Barrier barriers[kBarriers];
  int32_t predicates, predicate_result;  // __syncthreads_count: so far, and of the last one
  bool shuffled;  // threads run in an order drawn from `random`
  uint64_t random;
};

// A launch, shared by its workers and the thread that watches over it.
struct Launch {
  const tk_launch* request;
  tk_result* result;
  uint64_t block_count, stride, start;   // the i-th block to run is (start + i * stride) % block_count
  std::atomic<uint64_t> next_block;
  std::atomic<int> running;              // workers that have not finished
  std::atomic<int> error_claimed;        // the first error is the one that is told
  std::atomic<int> stop;                 // TK_TIMEOUT or TK_INTERRUPTED once the launch must end
  int event;                             // written to when something happened that the watching thread must see
};

// Something that a signal handler saw; told afterwards, outside of the handler.
struct Fault {
  int signal;
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
  uint8_t *shared_pages, *shared_end;  // shared memory ends at shared_end, against a guard
  uint8_t* signal_stack;
  uint8_t* fault_stack;  // a faulting fiber's own stack may be what is broken
  Fault fault;
  volatile int critical;          // > 0: holds a lock or writes a report, must not be torn away
  volatile int stop_requested;    // while it was critical
  tk_counters counters;
};

// The worker that this OS thread is.
extern __thread Worker* tk_worker __attribute__((tls_model("initial-exec")));

inline Fiber& current_fiber() { return *static_cast<Fiber*>(tk_current); }
inline Block& current_block() { return tk_worker->block; }

// --------------------------------------------------------------------------------------------------- scheduler.cpp

// Let others run until `fiber`, the current one, has been woken.
void wait_for(Block& block, Fiber& fiber, const Wait& wait, int line);
// With a shuffled order every collective is a chance for others to run first.
void maybe_yield(Block& block, Fiber& fiber);
// The current fiber has returned from the kernel.
[[noreturn]] void finish_fiber(Block& block, Fiber& fiber);
// Give up the current block, whatever its fibers do.
[[noreturn]] void leave_block();

// --------------------------------------------------------------------------------------------------------- warp.cpp

// Called when `warp` has lost a lane: the collectives may now be complete.
void complete_collectives(Block& block, Warp& warp);

// ------------------------------------------------------------------------------------------------------ barrier.cpp

void release_if_complete(Block& block, Barrier& barrier);

// ------------------------------------------------------------------------------------------------------- faults.cpp

void install_signal_handlers();
