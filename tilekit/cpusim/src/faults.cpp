// SPDX-License-Identifier: Apache-2.0
// Faults and stops: a signal becomes a report, the block is left, and the process lives.
//
// The handler only notes what it saw and moves the thread, by changing the context that it will return to, onto a
// stack kept for this. The report is written there, in the ordinary world where locks and printf may be used.
#include <signal.h>
#include <string.h>
#include <ucontext.h>

#include "check.h"
#include "fiber.h"
#include "pages.h"

namespace {

// A fault within this distance of a tensor is called an access out of its bounds. Its guard pages are as wide.
const int64_t kNear = int64_t(64) << 20;

struct Nearest {
  int index = -1;
  int64_t offset = 0;
};

bool inside(const uint8_t* p, const uint8_t* begin, const uint8_t* end) { return p >= begin && p < end; }

const uint8_t* stacks_end(const Worker& worker) { return worker.stacks + worker.stack_count * kStackBytes; }

// Distance from `address` to [begin, end), 0 inside.
int64_t distance(const uint8_t* address, const uint8_t* begin, const uint8_t* end) {
  if (address < begin) return begin - address;
  return address < end ? 0 : address - end + 1;
}

Nearest nearest_tensor(const tk_launch& request, const uint8_t* address) {
  Nearest nearest;
  int64_t best = kNear;
  for (int i = 0; i < request.tensors; ++i) {
    const tk_tensor& tensor = request.tensor[i];
    const int64_t d = distance(address, tensor.begin, tensor.begin + tensor.bytes);
    if (d >= best) continue;
    best = d;
    nearest = {i, address - tensor.begin};
  }
  return nearest;
}

void describe_bad_access(tk_error& error, const Worker& worker, const Fault& fault) {
  const tk_launch& request = *worker.launch->request;
  const uint8_t* const address = fault.address;
  Text message = message_of(error);
  if (fault.code == SI_KERNEL) {  // the processor does not say which
    error.kind = TK_SEGFAULT;
    message.print("access to an address that no memory can have, or an instruction that is not allowed");
    return;
  }
  if (inside(address, worker.stacks, stacks_end(worker))) {
    error.kind = TK_STACK_OVERFLOW;
    message.print("stack overflow: the local arrays of one thread take more than %zu KiB",
                  (kStackBytes - kPage) / 1024);
    return;
  }
  if (describe_near(error, request, address)) return;
  const uint8_t* const shared = worker.shared_begin;
  if (inside(address, worker.shared_end - kSharedGuard, worker.shared_end + kSharedGuard)) {
    error.kind = TK_OUT_OF_BOUNDS;
    error.byte_offset = address - shared;
    message.print("out-of-bounds access to shared memory: byte offset %lld, the block has %u bytes",
                  static_cast<long long>(error.byte_offset), request.shared_bytes);
    return;
  }
  error.kind = TK_SEGFAULT;
  message.print("access to address 0x%zx, which belongs to no tensor", reinterpret_cast<size_t>(address));
}

const char* name_of(int signal) {
  switch (signal) {
    case SIGSEGV: return "SIGSEGV";
    case SIGBUS: return "SIGBUS";
    case SIGFPE: return "SIGFPE";
    case SIGILL: return "SIGILL";
    default: return "SIGTRAP";
  }
}

void describe(tk_error& error, const Worker& worker, const Fault& fault) {
  if (fault.code <= 0 && fault.signal != SIGUSR2) {  // sent by a function, not by the processor
    error.kind = TK_FAIL;
    message_of(error).print("the kernel raised the signal %s", name_of(fault.signal));
    return;
  }
  switch (fault.signal) {
    case SIGUSR2:
      describe_stop(error);
      break;
    case SIGFPE:
      error.kind = TK_FLOAT_EXCEPTION;
      message_of(error).print("integer division by zero, or overflow in a division");
      break;
    case SIGILL:
    case SIGTRAP:
      error.kind = TK_FAIL;
      message_of(error).print("the kernel ran into code that must not be reached");
      break;
    default:
      describe_bad_access(error, worker, fault);
  }
}

// The place in the kernel's library that the fault belongs to. In a function that the kernel called, such as expf, it
// is the call, whose return address is the first of the library's on the fiber's stack.
const uint8_t* place_in_kernel(const Worker& worker, const Fault& fault, const Fiber& fiber) {
  const tk_image& image = worker.launch->request->image;
  if (inside(fault.pc, image.text, image.text_end)) return fault.pc;
  const uint8_t* const top = worker.stacks + (fiber.index + 1) * kStackBytes;
  const uint8_t* const bottom = top - kStackBytes + kPage;
  const uint8_t* sp = fault.sp < bottom ? bottom : fault.sp;
  for (sp = bottom + ((sp - bottom + 7) & ~7); sp + 8 <= top; sp += 8) {
    const uint8_t* word;
    memcpy(&word, sp, sizeof word);
    if (inside(word, image.text, image.text_end)) return word - 1;
  }
  return nullptr;
}

// Runs on the fault stack, as if the faulting instruction had called it.
[[noreturn]] void report_fault() {
  Worker& worker = *tk_worker;
  const Fault fault = worker.fault;
  const Fiber& fiber = current_fiber();
  const int stop = worker.launch->stop.load();
  if (stop != TK_INTERRUPTED) report_unwritten_first();
  {
    Critical guard;
    if (tk_error* error = claim_error(stop ? static_cast<tk_kind>(stop) : TK_SEGFAULT, 0)) {
      attribute(*error, fiber);
      describe(*error, worker, fault);
      tk_image runtime;
      tk_image_of(reinterpret_cast<const void*>(&tk_launch_kernel), &runtime);
      // in check mode every access calls the runtime, and the nearest place in the kernel is the one that did
      if (worker.checker == nullptr && inside(fault.pc, runtime.text, runtime.text_end)) {
        error->line = fiber.line;  // the runtime works for the tk:: call at this line
      } else if (const uint8_t* place = place_in_kernel(worker, fault, fiber)) {
        error->pc = place - worker.launch->request->image.base;
      }
      publish_error();
    }
  }
  leave_block();
}

void move_to_fault_stack(ucontext_t& context, const Worker& worker) {
  const uintptr_t top = reinterpret_cast<uintptr_t>(worker.fault_stack + kStackBytes) & ~uintptr_t(15);
#if defined(__x86_64__)
  context.uc_mcontext.gregs[REG_RSP] = top - 8;  // aligned as after a call
  context.uc_mcontext.gregs[REG_RIP] = reinterpret_cast<greg_t>(&report_fault);
#else
  context.uc_mcontext.sp = top;
  context.uc_mcontext.pc = reinterpret_cast<uintptr_t>(&report_fault);
#endif
}

void on_signal(int signal, siginfo_t* info, void* raw_context) {
  ucontext_t& context = *static_cast<ucontext_t*>(raw_context);
#if defined(__x86_64__)
  const auto pc = reinterpret_cast<const uint8_t*>(context.uc_mcontext.gregs[REG_RIP]);
  const auto sp = reinterpret_cast<const uint8_t*>(context.uc_mcontext.gregs[REG_RSP]);
#else
  const auto pc = reinterpret_cast<const uint8_t*>(context.uc_mcontext.pc);
  const auto sp = reinterpret_cast<const uint8_t*>(context.uc_mcontext.sp);
#endif
  Worker* const worker = tk_worker;
  const bool on_fiber = worker && worker->stacks && inside(sp, worker->stacks, stacks_end(*worker));
  if (signal == SIGUSR2) {
    if (!on_fiber) return;  // between two blocks: the worker looks for a stop before the next
    if (!worker->launch->stop.load() && !worker->launch->error_claimed.load()) return;  // meant for the launch before
    if (worker->critical) {
      worker->stop_requested = 1;
      return;
    }
  } else if (!on_fiber) {  // not the kernel's fault but ours: let the process die of it
    ::signal(signal, SIG_DFL);
    raise(signal);  // what somebody sent would not come again
    return;
  }
  worker->critical = 0;
  worker->fault = {signal, info->si_code, pc, sp, static_cast<const uint8_t*>(info->si_addr)};
  move_to_fault_stack(context, *worker);
}

}  // namespace

bool is_near_tensor(const tk_launch& request, const uint8_t* address) {
  return nearest_tensor(request, address).index >= 0;
}

bool describe_near(tk_error& error, const tk_launch& request, const uint8_t* address) {
  const Nearest near = nearest_tensor(request, address);
  if (near.index < 0) return false;
  const tk_tensor& tensor = request.tensor[near.index];
  error.kind = TK_OUT_OF_BOUNDS;
  error.tensor = near.index;
  error.byte_offset = near.offset;
  message_of(error).print("out-of-bounds access to '%s': byte offset %lld, the tensor has %llu bytes", tensor.name,
                          static_cast<long long>(near.offset), static_cast<unsigned long long>(tensor.bytes));
  return true;
}

void install_signal_handlers() {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGUSR2};
  for (int signal : signals) sigaction(signal, &action, nullptr);
}
