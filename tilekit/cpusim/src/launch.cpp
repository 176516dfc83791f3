// SPDX-License-Identifier: Apache-2.0
// A launch: blocks are handed out to OS threads that are kept between launches, while the calling thread watches for
// the time-out, for errors, and for the one who asked for the launch.
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "fiber.h"
#include "pages.h"
#include "print.h"

namespace {

enum {
  kMaxWorkers = 256,
  // Every fiber stack is two mappings, and Linux grants a process 65530: so many stacks may exist, in all workers.
  kMaxStacks = 28000,
  kStopPeriodMs = 20,  // a thread that could not be stopped is asked again
  kProgressPeriodMs = 50,  // how often blocks that have ended are told
  kIdlePeriodMs = 1,   // while workers are idle, whether all of them are is looked at again
};
enum : size_t { kSignalStack = 64 * 1024, kSharedAlignment = 1024 };
const double kStopPatience = 1.0;  // seconds; a thread that cannot be stopped for so long makes the process end
// The statuses with which it ends, which the client knows.
const int kUnstoppable = 75, kNotAlone = 76;
const uint8_t kGuardFill = 0xa5;

Worker* workers[kMaxWorkers];
int worker_count;

double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// ---------------------------------------------------------------------------------------------------------- blocks

void fiber_main() {
  const tk_launch& request = *tk_worker->launch->request;
  request.kernel(request.arguments);
  finish_fiber(current_block(), current_fiber());
}

// What a fiber knows for a whole launch.
void prepare_fiber(Block& block, int index, const tk_launch& request) {
  Fiber& fiber = block.fibers[index];
  const uint32_t i = index;
  const tk_dim3 size = request.block;
  fiber.thread_idx = {i % size.x, i / size.x % size.y, i / size.x / size.y};
  fiber.block_dim = request.block;
  fiber.grid_dim = request.grid;
  fiber.shared = block.worker->shared_begin;
  fiber.warp = &block.warps[index / kWarpSize];
  fiber.index = static_cast<uint16_t>(index);
  fiber.lane = static_cast<uint8_t>(index % kWarpSize);
}

uint8_t* stack_top(const Worker& worker, int index) {
  // Stacks that begin at the same offset of their page would evict each other from the first-level cache.
  const size_t stagger = static_cast<size_t>(index % 64) * 192;
  return worker.stacks + (index + 1) * kStackBytes - 64 - stagger;
}

// What it knows at the beginning of a block.
void begin_fiber(Fiber& fiber, const Worker& worker, tk_dim3 block_idx) {
  fiber.block_idx = block_idx;
  fiber.wait = nullptr;
  fiber.line = 0;
  fiber.detail = 0;
  fiber.copies.first = fiber.copies.count = 0;
  fiber.copies.group = 0;
  fiber.next_access = 0;
  fiber.returned = false;
  fiber.sp = tk_new_fiber(stack_top(worker, fiber.index), fiber_main);
}

void run_block(Worker& worker, uint64_t number) {
  const tk_launch& request = *worker.launch->request;
  Block& block = worker.block;
  const uint64_t x = request.grid.x, y = request.grid.y;
  const tk_dim3 block_idx = {static_cast<uint32_t>(number % x), static_cast<uint32_t>(number / x % y),
                             static_cast<uint32_t>(number / x / y)};
  memset(worker.shared_begin, kSharedFill, request.shared_bytes);
  memset(block.barriers, 0, sizeof block.barriers);
  block.alive = block.thread_count;
  block.predicates = 0;
  block.held_count = 0;
  block.shuffled = request.seed != 0;
  block.random = (request.seed + number) * 0x9e3779b97f4a7c15u | 1;
  for (int i = 0; i < block.warp_count; ++i) {
    Warp& warp = block.warps[i];
    const int lanes = block.thread_count - i * kWarpSize;
    warp.ready = warp.alive = lanes >= kWarpSize ? ~uint32_t(0) : (uint32_t(1) << lanes) - 1;
    warp.fibers = block.fibers + i * kWarpSize;
    warp.polling = 0;
    warp.open = 0;
    warp.access_count = 0;
    for (Collective& c : warp.collectives) c.arrived = 0;
  }
  for (int i = 0; i < block.thread_count; ++i) begin_fiber(block.fibers[i], worker, block_idx);
  if (worker.checker) {
    order_begin_block(*worker.checker, number);
    shared_begin_block(*worker.checker);
  }
  tk_current = &block.fibers[0];
  tk_switch(&worker.main_sp, block.fibers[0].sp);  // comes back by leave_block()
  tk_current = nullptr;
  ++worker.counters.blocks;
  worker.counters.threads += block.thread_count;
}

void run_blocks(Worker& worker) {
  Launch& launch = *worker.launch;
  worker.critical = worker.stop_requested = 0;
  worker.unanswered = 0;
  while (!launch.error_claimed.load() && !launch.stop.load()) {
    const uint64_t turn = launch.next_block.fetch_add(1);
    if (turn >= launch.block_count) break;
    const __uint128_t number = static_cast<__uint128_t>(turn) * launch.stride + launch.start;
    const uint64_t index = static_cast<uint64_t>(number % launch.block_count);
    run_block(worker, launch.request->blocks ? launch.request->block_number[index] : index);
  }
}

// --------------------------------------------------------------------------------------------------------- workers

void* worker_main(void* argument) {
  Worker& worker = *static_cast<Worker*>(argument);
  tk_worker = &worker;
  stack_t stack = {};
  stack.ss_sp = worker.signal_stack;
  stack.ss_size = kSignalStack;
  sigaltstack(&stack, nullptr);
  for (;;) {
    while (sem_wait(&worker.wake)) {
    }
    Launch& launch = *worker.launch;
    run_blocks(worker);
    const int event = launch.event;
    if (launch.running.fetch_sub(1) == 1) {  // the launch may be gone from here on
      const uint64_t one = 1;
      if (write(event, &one, sizeof one) < 0) abort();
    }
  }
}

Worker* start_worker() {
  Worker* worker = static_cast<Worker*>(calloc(1, sizeof(Worker)));
  if (worker == nullptr) return nullptr;
  worker->block.worker = worker;
  worker->signal_stack = map_guarded(kSignalStack, kPage);
  worker->fault_stack = map_guarded(kStackBytes, kPage);
  worker->scratch = map_guarded(kScratchBytes, kPage);
  sem_init(&worker->wake, 0, 0);
  if (!worker->signal_stack || !worker->fault_stack || !worker->scratch) return nullptr;
  return pthread_create(&worker->os_thread, nullptr, worker_main, worker) ? nullptr : worker;
}

void release_stacks(Worker& worker) {
  if (worker.stacks) unmap_stacks(worker.stacks, worker.stack_count);
  for (size_t i = 0; i < worker.stack_count; ++i) free(worker.block.fibers[i].copies.copy);
  free(worker.block.fibers);
  free(worker.block.warps);
  worker.block.fibers = nullptr;
  worker.block.warps = nullptr;
  worker.stacks = nullptr;
  worker.stack_count = 0;
}

// Give an idle worker what blocks of this launch need; false if memory is out.
bool equip(Worker& worker, const tk_launch& request, GlobalShadow* global) {
  Block& block = worker.block;
  const int threads = static_cast<int>(request.block.x * request.block.y * request.block.z);
  const size_t shared_pages = (request.shared_bytes + kPage - 1) / kPage * kPage;
  block.thread_count = threads;
  block.warp_count = (threads + kWarpSize - 1) / kWarpSize;
  block.shared_bytes = request.shared_bytes;
  block.alive = 0;
  memset(&worker.counters, 0, sizeof worker.counters);
  if (worker.stack_count < static_cast<size_t>(threads)) {
    release_stacks(worker);
    block.fibers = static_cast<Fiber*>(aligned_alloc(alignof(Fiber), sizeof(Fiber) * threads));
    block.warps = static_cast<Warp*>(malloc(sizeof(Warp) * block.warp_count));
    if (!block.fibers || !block.warps) return false;
    memset(static_cast<void*>(block.fibers), 0, sizeof(Fiber) * threads);
    worker.stacks = map_stacks(threads);
    if (worker.stacks == nullptr) return false;
    worker.stack_count = threads;
  }
  const size_t have = worker.shared_pages ? worker.shared_end - worker.shared_pages : 0;
  if (worker.shared_pages == nullptr || have < shared_pages) {
    if (worker.shared_pages) unmap_guarded(worker.shared_pages, have, kSharedGuard);
    worker.shared_pages = map_guarded(shared_pages, kSharedGuard);
    if (worker.shared_pages == nullptr) return false;
    worker.shared_end = worker.shared_pages + shared_pages;
  }
  // to touch the guard it may begin anywhere; check mode knows its end, and wants the alignment that it has on a GPU
  const size_t taken = global ? (request.shared_bytes + kSharedAlignment - 1) / kSharedAlignment * kSharedAlignment
                              : request.shared_bytes;
  worker.shared_begin = worker.shared_end - taken;
  for (int i = 0; i < threads; ++i) prepare_fiber(block, i, request);
  worker.checker = nullptr;
  return global == nullptr || equip_checker(worker, global);
}

// Whether `threads` stacks more may exist for the index-th worker, once the workers behind it have given theirs back.
bool make_room(int index, size_t threads) {
  size_t others = 0;
  for (int i = 0; i < worker_count; ++i) others += i == index ? 0 : workers[i]->stack_count;
  for (int i = worker_count - 1; i > index && others + threads > kMaxStacks; --i) {
    others -= workers[i]->stack_count;
    release_stacks(*workers[i]);
  }
  return others + threads <= kMaxStacks;
}

// Have an index-th worker, equipped for this launch; false if there is no room or no memory for it.
bool ready_worker(int index, const tk_launch& request, GlobalShadow* global) {
  if (index >= kMaxWorkers || !make_room(index, request.block.x * request.block.y * request.block.z)) return false;
  if (index == worker_count) {
    Worker* const worker = start_worker();
    if (worker == nullptr) return false;
    workers[worker_count++] = worker;
  }
  return equip(*workers[index], request, global);
}

// As many equipped workers as the launch can use, which may be fewer than it asks for; 0 if not even one.
int gather_workers(const tk_launch& request, uint64_t block_count, GlobalShadow* global) {
  int wanted = request.os_threads;
  if (static_cast<uint64_t>(wanted) > block_count) wanted = static_cast<int>(block_count);
  if (wanted < 1) wanted = 1;
  int count = 0;
  while (count < wanted && ready_worker(count, request, global)) ++count;
  return count;
}

void set_going(Launch& launch, Worker& worker) {
  worker.launch = &launch;
  sem_post(&worker.wake);
}

// --------------------------------------------------------------------------------------------------------- regions

void fill_slack(const tk_launch& request) {
  for (int i = 0; i < request.regions; ++i) {
    const tk_region& r = request.region[i];
    memset(r.mapped, kGuardFill, r.begin - r.mapped);
    memset(r.end, kGuardFill, r.mapped_end - r.end);
  }
}

const uint8_t* first_changed(const uint8_t* begin, const uint8_t* end) {
  while (begin < end && *begin == kGuardFill) ++begin;
  return begin == end ? nullptr : begin;
}

// A write so close to a tensor that it stayed on its own page did not fault; it is found now.
void check_slack(const tk_launch& request, tk_error& error) {
  for (int i = 0; i < request.regions; ++i) {
    const tk_region& r = request.region[i];
    const uint8_t* hit = first_changed(r.end, r.mapped_end);
    if (hit == nullptr) hit = first_changed(r.mapped, r.begin);
    if (hit == nullptr) continue;
    error.kind = TK_OUT_OF_BOUNDS;
    message_of(error).print("out-of-bounds write beside a tensor");
    new_note(error, 0).print("found when the kernel had ended, so its line is not known");
    for (int k = 0; k < request.tensors; ++k) {
      const tk_tensor& tensor = request.tensor[k];
      if (hit >= r.end ? tensor.begin + tensor.bytes != r.end : tensor.begin != r.begin) continue;
      error.tensor = k;
      error.byte_offset = hit - tensor.begin;
      message_of(error).print("out-of-bounds write to '%s': byte offset %lld, the tensor has %llu bytes", tensor.name,
                              static_cast<long long>(error.byte_offset),
                              static_cast<unsigned long long>(tensor.bytes));
      return;
    }
    return;
  }
}

// What is wrong only if nothing else is: a read of what nobody has written, not even later, and blocks that wrote the
// same value to one place, which did no harm yet.
void check_what_is_left(const Launch& launch, tk_error& error) {
  if (launch.global_shadow == nullptr) return;
  for (int i = 0; i < launch.worker_count; ++i) {
    const Checker& checker = *workers[i]->checker;
    if (checker.unwritten_global.address) return describe_unwritten(checker, error, checker.unwritten_global);
  }
  for (int i = 0; launch.request->strict && i < launch.worker_count; ++i) {
    const Checker& checker = *workers[i]->checker;
    if (checker.same_value.bytes) return describe_same_value(checker, error);
  }
}

// ---------------------------------------------------------------------------------------------------------- watching

// Wait for an event, for `seconds` (without end if negative) at most; if listening, also for a word from the one who
// asked for the launch. Returns whether there was one.
bool wait_for_news(const Launch& launch, double seconds, bool listening) {
  pollfd polled[2] = {{launch.event, POLLIN, 0}, {listening ? launch.request->control : -1, POLLIN, 0}};
  timespec t = {};
  if (seconds >= 0) {
    t.tv_sec = static_cast<time_t>(seconds);
    t.tv_nsec = static_cast<long>((seconds - static_cast<double>(t.tv_sec)) * 1e9);
  }
  if (ppoll(polled, 2, seconds >= 0 ? &t : nullptr, nullptr) <= 0) return false;
  if (polled[0].revents) {
    uint64_t count;
    if (read(launch.event, &count, sizeof count) < 0 && errno != EAGAIN) abort();
  }
  return polled[1].revents != 0;
}

// Finds out whether every block of a launch waits for another one. One look does not tell: an answer may have been
// given a moment ago, to a worker that has not looked since. It is so if, after it seemed so, each worker has polled
// once more from beginning to end (has begun twice), and no poll of any was answered.
class StuckDetector {
 public:
  // To be called again and again; true once it is certain.
  bool certain(const Launch& launch) {
    if (launch.idle.load() < launch.running.load()) {
      suspects_ = 0;
      return false;
    }
    if (suspects_ != launch.worker_count || answered_ != launch.polls_answered.load()) {
      suspects_ = launch.worker_count;
      answered_ = launch.polls_answered.load();
      for (int i = 0; i < suspects_; ++i) polls_[i] = workers[i]->polls.load();
      return false;
    }
    int polled = 0;
    for (int i = 0; i < suspects_; ++i) polled += workers[i]->polls.load() >= polls_[i] + 2;
    return polled >= launch.running.load() && answered_ == launch.polls_answered.load();
  }

 private:
  int suspects_ = 0;
  uint64_t answered_ = 0;
  uint64_t polls_[kMaxWorkers];
};

// Blocks wait for some that have not begun: let one more worker begin them. False if there is no room for it.
bool add_worker(Launch& launch) {
  if (launch.next_block.load() >= launch.block_count) return false;
  if (!ready_worker(launch.worker_count, *launch.request, launch.global_shadow)) return false;
  launch.running.fetch_add(1);
  set_going(launch, *workers[launch.worker_count++]);
  return true;
}

// Say how many blocks have ended, from what the workers count anyway.
void report_progress(const Launch& launch) {
  uint64_t ended = 0;
  for (int i = 0; i < launch.worker_count; ++i) {
    ended += __atomic_load_n(&workers[i]->counters.blocks, __ATOMIC_RELAXED);
  }
  __atomic_store_n(launch.request->finished, ended, __ATOMIC_RELAXED);
}

// Until the launch has ended, or must: because of an error, a word, or the time.
void watch(Launch& launch, double begin) {
  const double timeout = launch.request->timeout_s;
  StuckDetector stuck;
  while (launch.running.load() > 0 && !launch.error_claimed.load()) {
    double left = timeout > 0 ? begin + timeout - now() : -1;
    if (timeout > 0 && left < 0) left = 0;
    if (launch.request->finished) {
      report_progress(launch);
      if (left < 0 || left > 1e-3 * kProgressPeriodMs) left = 1e-3 * kProgressPeriodMs;
    }
    const bool some_idle = launch.idle.load() > 0;
    if (some_idle && (timeout <= 0 || left > 1e-3 * kIdlePeriodMs)) left = 1e-3 * kIdlePeriodMs;
    const bool spoken = wait_for_news(launch, left, true);
    if (launch.running.load() == 0) return;
    if (spoken) {
      launch.stop.store(TK_INTERRUPTED);
      return;
    }
    if (timeout > 0 && now() >= begin + timeout) {
      launch.stop.store(TK_TIMEOUT);
      return;
    }
    if (!stuck.certain(launch) || add_worker(launch)) continue;
    launch.blamed = find_blamed(launch);
    launch.stuck.store(launch.running.load());
  }
}

// Make the workers that still run leave their blocks.
void stop(const Launch& launch) {
  const double begin = now();
  while (launch.running.load() > 0) {
    for (int i = 0; i < launch.worker_count; ++i) pthread_kill(workers[i]->os_thread, SIGUSR2);
    wait_for_news(launch, 1e-3 * kStopPeriodMs, false);
    if (now() - begin > kStopPatience) _exit(kUnstoppable);
  }
}

nlink_t count_threads() {  // each is a folder, whose `..` is a link to this one
  struct stat tasks;
  return stat("/proc/self/task", &tasks) ? 0 : tasks.st_nlink;
}

// Whether threads or processes that a kernel has started live on; `before` are the threads before the first worker.
bool is_alone(nlink_t before) {
  siginfo_t child;
  return count_threads() <= before + worker_count && waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) < 0;
}

// Blocks in order; with a seed, in an order drawn from it: every stride that has no divisor in common with the count
// visits each block once.
void choose_order(Launch& launch, uint64_t seed) {
  launch.start = 0;
  launch.stride = 1;
  if (seed == 0) return;
  launch.start = seed * 0x9e3779b97f4a7c15u % launch.block_count;
  for (uint64_t stride = (seed * 0xbf58476d1ce4e5b9u >> 11) % launch.block_count; stride > 1; --stride) {
    uint64_t a = launch.block_count, b = stride;
    while (b) {
      const uint64_t rest = a % b;
      a = b;
      b = rest;
    }
    if (a == 1) {
      launch.stride = stride;
      return;
    }
  }
}

void add_counters(tk_counters& to, const tk_counters& from) {
  to.blocks += from.blocks;
  to.threads += from.threads;
  to.switches += from.switches;
  to.collectives += from.collectives;
  to.barriers += from.barriers;
  to.mma += from.mma;
  to.copies += from.copies;
  to.copy_bytes += from.copy_bytes;
  to.shared_bytes += from.shared_bytes;
  to.bank_conflicts += from.bank_conflicts;
}

}  // namespace

TK_EXPORT void tk_launch_kernel(const tk_launch* request, tk_result* result) {
  static const int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  static const nlink_t threads = count_threads();
  static const bool handlers_installed = (install_signal_handlers(), true);
  (void)handlers_installed;
  memset(result, 0, sizeof *result);
  result->error.tensor = result->error.thread = result->error.buffer = -1;
  clear_printed();
  hand_over_printed(*result);
  fill_slack(*request);

  Launch launch = {};
  launch.request = request;
  launch.result = result;
  launch.event = event;
  launch.workers = workers;
  launch.block_count = static_cast<uint64_t>(request->grid.x) * request->grid.y * request->grid.z;
  if (request->blocks) launch.block_count = request->blocks;
  if (launch.block_count == 0) return;
  if (request->check && (launch.global_shadow = global_new(*request)) == nullptr) {
    result->error.kind = TK_FAIL;
    message_of(result->error).print("no memory to check a kernel with tensors of this size");
    return;
  }
  choose_order(launch, request->seed);
  launch.worker_count = gather_workers(*request, launch.block_count, launch.global_shadow);
  if (launch.worker_count == 0) {
    global_free(launch.global_shadow);
    result->error.kind = TK_FAIL;
    message_of(result->error).print("no memory for the stacks and the shared memory of a block");
    return;
  }
  const double begin = now();
  launch.running.store(launch.worker_count);
  for (int i = 0; i < launch.worker_count; ++i) set_going(launch, *workers[i]);
  watch(launch, begin);
  stop(launch);
  if (!is_alone(threads)) _exit(kNotAlone);
  result->seconds = now() - begin;

  global_free(launch.global_shadow);

  for (int i = 0; i < launch.worker_count; ++i) add_counters(result->counters, workers[i]->counters);
  tk_error& error = result->error;
  const int reason = launch.stop.load();
  if (!launch.error_claimed.load() && reason) {  // it was stopped between two blocks
    error.kind = reason;
    if (reason == TK_TIMEOUT) {
      message_of(error).print("the kernel still ran after %g s, and was stopped", request->timeout_s);
    } else {
      message_of(error).print("the kernel was interrupted");
    }
  }
  if (error.kind == TK_OK) check_slack(*request, error);
  if (error.kind == TK_OK) check_what_is_left(launch, error);
  hand_over_printed(*result);
}

TK_EXPORT void tk_image_of(const void* symbol, tk_image* image) {
  struct Search {
    uintptr_t symbol;
    tk_image* image;
  } search = {reinterpret_cast<uintptr_t>(symbol), image};
  *image = {};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        const Search& search = *static_cast<Search*>(data);
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const ElfW(Phdr)& part = info->dlpi_phdr[i];
          const uintptr_t begin = info->dlpi_addr + part.p_vaddr, end = begin + part.p_memsz;
          if (part.p_type != PT_LOAD || search.symbol < begin || search.symbol >= end) continue;
          *search.image = {reinterpret_cast<const uint8_t*>(info->dlpi_addr), reinterpret_cast<const uint8_t*>(begin),
                           reinterpret_cast<const uint8_t*>(end)};
          return 1;
        }
        return 0;
      },
      &search);
}
