// SPDX-License-Identifier: Apache-2.0
// Semaphores, and blocks that can do nothing but look at them. Other workers may run the blocks that they wait for; if
// those have not begun, the watching thread adds a worker (launch.cpp); if there are none, the launch is stuck.
#include <sched.h>
#include <stdio.h>
#include <time.h>

#include "check.h"

namespace {

enum { kPatience = 50 };  // polls without an answer after which a worker counts as idle
const timespec kPause = {0, 100 * 1000};

void describe_semaphore(const Block& block, const Fiber& fiber, char* text, size_t bytes) {
  Text what(text, bytes);
  const int tensor = tensor_at(*block.worker->launch->request, fiber.semaphore);
  if (tensor < 0) {
    what.print("for a semaphore");
  } else {
    const tk_tensor& found = block.worker->launch->request->tensor[tensor];
    const auto index = fiber.semaphore - reinterpret_cast<const int32_t*>(found.begin);
    what.print("for element %lld of '%s'", static_cast<long long>(index), found.name);
  }
  what.print(" to become %d, and it is %d", static_cast<int32_t>(fiber.detail),
             __atomic_load_n(fiber.semaphore, __ATOMIC_ACQUIRE));
}

void hold(Block& block, const int32_t* semaphore) {
  if (block.held_count < kHeld) block.held[block.held_count++] = semaphore;
}

void release(Block& block, const int32_t* semaphore) {
  for (int i = block.held_count - 1; i >= 0; --i) {
    if (block.held[i] == semaphore) block.held[i] = block.held[--block.held_count];
  }
}

bool holds(const Block& block, const int32_t* semaphore) {
  for (int i = 0; i < block.held_count; ++i) {
    if (block.held[i] == semaphore) return true;
  }
  return false;
}

// The block that holds what this one waits for; nullptr if that one is not there.
const Worker* holder_of(const Launch& launch, const Worker& waiting) {
  for (int i = 0; i < launch.worker_count; ++i) {
    const Worker& other = *launch.workers[i];
    if (&other == &waiting || !other.block.alive) continue;
    if (holds(other.block, waiting.block.fibers[0].semaphore)) return &other;
  }
  return nullptr;
}

bool comes_before(tk_dim3 a, tk_dim3 b) {
  if (a.z != b.z) return a.z < b.z;
  return a.y != b.y ? a.y < b.y : a.x < b.x;
}

}  // namespace

const Wait kSemaphoreWait = {describe_semaphore};

const Worker* find_blamed(const Launch& launch) {
  const Worker* blamed = nullptr;
  for (int i = 0; i < launch.worker_count; ++i) {  // of the first block, so that the same is told each time
    const Worker& worker = *launch.workers[i];
    if (!worker.block.alive) continue;
    if (!blamed || comes_before(worker.block.fibers[0].block_idx, blamed->block.fibers[0].block_idx)) blamed = &worker;
  }
  for (int steps = 0; blamed && steps < launch.worker_count; ++steps) {
    const Worker* const holder = holder_of(launch, *blamed);
    if (holder == nullptr) break;
    blamed = holder;
  }
  return blamed;
}

void rest(Worker& worker) {
  Launch& launch = *worker.launch;
  if (launch.stuck.load() && launch.blamed == &worker) report_deadlock(worker.block);
  worker.polls.fetch_add(1);
  if (worker.unanswered < kPatience) {
    ++worker.unanswered;
    sched_yield();
    return;
  }
  if (worker.unanswered == kPatience) {
    ++worker.unanswered;
    launch.idle.fetch_add(1);
    publish_news(launch);
  }
  nanosleep(&kPause, nullptr);
}

void poll_answered(Worker& worker) {
  if (worker.unanswered > kPatience) {
    worker.launch->polls_answered.fetch_add(1);
    worker.launch->idle.fetch_sub(1);
  }
  worker.unanswered = 0;
}

TK_EXPORT void tk_rt_lock_semaphore(const int32_t* semaphore, int32_t value, int line) {
  Block& block = current_block();
  Fiber& fiber = current_fiber();
  fiber.line = line;
  if (fiber.index == 0) {
    fiber.semaphore = semaphore;
    if (Checker* const c = checker()) global_look_at_semaphore(*c, actor_of(fiber), semaphore, site_of_line(line));
    while (__atomic_load_n(semaphore, __ATOMIC_ACQUIRE) != value) {
      fiber.detail = static_cast<uint32_t>(value);
      poll_later(block, fiber, kSemaphoreWait, line);
    }
    poll_answered(*block.worker);
    hold(block, semaphore);
    if (Checker* const c = checker()) order_acquire(*c, semaphore);
  }
  tk_rt_barrier(0, 0, line);
  if (Checker* const c = checker()) order_acquired(*c);
}

TK_EXPORT void tk_rt_release_semaphore(int32_t* semaphore, int32_t value, int line) {
  tk_rt_barrier(0, 0, line);
  Fiber& fiber = current_fiber();
  if (Checker* const c = checker()) {
    order_close_release(*c, fiber.index);
    if (fiber.index == 0) {
      global_set_semaphore(*c, actor_of(fiber), semaphore, site_of_line(line));
      order_release(*c, semaphore);
    }
  }
  if (fiber.index != 0) return;
  release(current_block(), semaphore);
  __atomic_store_n(semaphore, value, __ATOMIC_RELEASE);
}
