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

void describe_semaphore(const Block&, const Fiber& fiber, char* text, size_t bytes) {
  snprintf(text, bytes, "for a semaphore to become %d, and it is %d", static_cast<int32_t>(fiber.detail),
           __atomic_load_n(fiber.semaphore, __ATOMIC_ACQUIRE));
}

const Wait kSemaphoreWait = {describe_semaphore};

}  // namespace

void rest(Worker& worker) {
  Launch& launch = *worker.launch;
  if (launch.stuck.load()) report_deadlock(worker.block);
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
    while (__atomic_load_n(semaphore, __ATOMIC_ACQUIRE) != value) {
      fiber.detail = static_cast<uint32_t>(value);
      poll_later(block, fiber, kSemaphoreWait, line);
    }
    poll_answered(*block.worker);
    if (Checker* const c = checker()) order_acquire(*c, semaphore);
  }
  tk_rt_barrier(0, 0, line);
  if (Checker* const c = checker()) order_acquired(*c);
}

TK_EXPORT void tk_rt_release_semaphore(int32_t* semaphore, int32_t value, int line) {
  tk_rt_barrier(0, 0, line);
  if (Checker* const c = checker()) {
    order_close_release(*c, current_fiber().index);
    if (current_fiber().index == 0) order_release(*c, semaphore);
  }
  if (current_fiber().index == 0) __atomic_store_n(semaphore, value, __ATOMIC_RELEASE);
}
