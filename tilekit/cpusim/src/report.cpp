// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

Critical::~Critical() {
  if (--tk_worker->critical > 0 || !tk_worker->stop_requested) return;
  tk_worker->stop_requested = 0;
  report_stop(current_fiber().line);
  leave_block();
}

void Text::print(const char* format, ...) {
  const size_t room = end_ - at_;
  va_list arguments;
  va_start(arguments, format);
  const int wanted = vsnprintf(at_, room, format, arguments);
  va_end(arguments);
  if (wanted > 0) at_ += static_cast<size_t>(wanted) < room ? wanted : room - 1;
}

tk_error* claim_error(tk_kind kind, int line) {
  Launch& launch = *tk_worker->launch;
  if (launch.error_claimed.exchange(1)) return nullptr;
  tk_error& error = launch.result->error;
  error.kind = kind;
  error.line = line;
  return &error;
}

void publish_news(const Launch& launch) {
  const uint64_t one = 1;
  if (write(launch.event, &one, sizeof one) < 0) abort();  // a descriptor of our own
}

void publish_error() { publish_news(*tk_worker->launch); }

Text message_of(tk_error& error) { return Text(error.message, sizeof error.message); }

Text new_note(tk_error& error, int line) {
  if (error.notes < TK_NOTES) ++error.notes;
  tk_note& note = error.note[error.notes - 1];
  note.line = line;
  return Text(note.text, sizeof note.text);
}

void attribute(tk_error& error, const Fiber& fiber) {
  error.block = fiber.block_idx;
  error.thread = fiber.index;
}

int tensor_at(const tk_launch& request, const void* address) {
  const uint8_t* const at = static_cast<const uint8_t*>(address);
  for (int i = 0; i < request.tensors; ++i) {
    const tk_tensor& tensor = request.tensor[i];
    if (at >= tensor.begin && at < tensor.begin + tensor.bytes) return i;
  }
  return -1;
}

void describe_stop(tk_error& error) {
  if (error.kind == TK_TIMEOUT) {
    message_of(error).print("the kernel still ran after %g s, and was stopped here",
                            tk_worker->launch->request->timeout_s);
  } else {
    message_of(error).print("the kernel was interrupted here");
  }
}

void report_stop(int line, uint64_t pc) {
  const int stop = tk_worker->launch->stop.load();
  if (stop == TK_OK) return;  // another thread's error ends the launch
  if (stop != TK_INTERRUPTED) report_unwritten_first();
  Critical guard;
  if (tk_error* error = claim_error(static_cast<tk_kind>(stop), line)) {
    error->pc = pc;
    describe_stop(*error);
    attribute(*error, current_fiber());
    publish_error();
  }
}

void fail(tk_kind kind, int line, const char* format, ...) {
  report_unwritten_first();
  {
    Critical guard;
    if (tk_error* error = claim_error(kind, line)) {
      va_list arguments;
      va_start(arguments, format);
      vsnprintf(error->message, sizeof error->message, format, arguments);
      va_end(arguments);
      attribute(*error, current_fiber());
      publish_error();
    }
  }
  leave_block();
}

void print_ranges(Text& text, const bool* member, int count) {
  bool first = true;
  for (int i = 0; i < count; ++i) {
    if (!member[i]) continue;
    int last = i;
    while (last + 1 < count && member[last + 1]) ++last;
    text.print(last == i ? "%s%d" : "%s%d-%d", first ? "" : ",", i, last);
    first = false;
    i = last;
  }
}

TK_EXPORT void tk_rt_fail(int line, const char* message) {
  fail(TK_FAIL, line, "%s", message);
}

TK_EXPORT void tk_rt_misaligned(const void* address, int bytes, int line) {
  fail(TK_MISALIGNED, line, "access of %d bytes at an address that is no multiple of %d: %p (a GPU traps here)", bytes,
       bytes, address);
}
