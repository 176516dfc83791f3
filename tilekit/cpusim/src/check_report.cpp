// SPDX-License-Identifier: Apache-2.0
// What check mode found, in words: one sentence, the two accesses, and what is missing between them.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "check.h"

namespace {

const char* verb_of(Verb verb) {
  switch (verb) {
    case kReads: return "reads";
    case kWrites: return "writes";
    case kCopies: return "copies into";
    case kLoadsMatrix: return "loads a matrix from";
    default: return "stores a matrix to";
  }
}

bool is_write(Verb verb) { return verb == kWrites || verb == kCopies || verb == kStoresMatrix; }

const char* hint_of(Missing missing, bool edited) {
  switch (missing) {
    case Missing::kSync:
      return "self.sync() is missing between the two";
    case Missing::kSyncWarp:
      return edited ? "self.sync(), or __syncwarp() in source.cu, is missing between the two: lanes of a warp run in "
                      "no order"
                    : "self.sync() is missing between the two: lanes of a warp run in no order";
    case Missing::kSyncAfterWait:
      return "self.sync() is missing behind the wait for the copy: a thread waits for its own copies only";
    case Missing::kWait:
      return "copy_async_wait_all(), or copy_async_wait_group(n) behind a copy_async_commit_group(), is missing "
             "between the two";
    case Missing::kWaitAndSync:
      return "copy_async_wait_all() or copy_async_wait_group(n), and self.sync() behind it, are missing between the "
             "two";
    case Missing::kSyncBeforeCopy:
      return "self.sync() is missing before the copy: the buffer is filled again while it is in use";
    default:
      return "blocks run in any order and at the same time: let one wait for the other with lock_semaphore and "
             "release_semaphore, or give each its own part";
  }
}

const char* title_of(const Conflict& conflict) {
  const Verb first = conflict.first.verb, second = conflict.second.verb;
  if (conflict.under_way) {
    return is_write(second) ? "written while a copy into it is under way"
                            : "read before the copy into it has arrived";
  }
  if (second == kCopies && !is_write(first)) return "race, refilled by a copy while it is read";
  if (conflict.first.block != conflict.second.block) {
    if (!is_write(second)) return "race of two blocks, a read after a write";
    return is_write(first) ? "race of two blocks, a write after a write" : "race of two blocks, a write after a read";
  }
  if (!is_write(second)) return "race, a read after a write";
  return is_write(first) ? "race, a write after a write" : "race, a write after a read";
}

int32_t line_of(Site site) { return site >> 31 ? static_cast<int32_t>(site & 0x7fffffff) : 0; }
uint64_t pc_of(Site site) { return site >> 31 ? 0 : site; }

tk_dim3 block_idx(const Checker& checker, uint64_t block) {
  const tk_dim3 grid = checker.worker->launch->request->grid;
  return {static_cast<uint32_t>(block % grid.x), static_cast<uint32_t>(block / grid.x % grid.y),
          static_cast<uint32_t>(block / grid.x / grid.y)};
}

void describe(const Checker& checker, tk_access& to, const Access& access) {
  to.line = line_of(access.site);
  to.pc = pc_of(access.site);
  to.block = block_idx(checker, access.block);
  to.thread = access.thread;
  to.writes = is_write(access.verb);
  snprintf(to.verb, sizeof to.verb, "%s", verb_of(access.verb));
}

// The tensor in shared memory that an offset belongs to: the one that the error's line is about, else any; -1: none.
int buffer_at(const tk_launch& request, int line, int64_t offset) {
  const int meant = line > 0 && line <= request.lines ? request.line_buffer[line - 1] : -1;
  for (int i = 0; i < request.buffers; ++i) {
    const tk_buffer& buffer = request.buffer[i];
    const bool inside = offset >= buffer.offset && offset < int64_t(buffer.offset) + buffer.bytes;
    if (inside && (meant < 0 || meant == i)) return i;
  }
  return -1;
}

void name_shared(const tk_launch& request, tk_error& error, Text& text, int64_t offset) {
  error.is_shared = 1;
  error.byte_offset = offset;
  error.buffer = buffer_at(request, error.line, offset);
  if (error.buffer < 0) {
    text.print("byte %lld of shared memory", static_cast<long long>(offset));
    return;
  }
  const tk_buffer& buffer = request.buffer[error.buffer];
  error.byte_offset = offset - buffer.offset;
  text.print("byte %lld of shared tensor '%s'", static_cast<long long>(error.byte_offset), buffer.name);
}

// The memory that holds an address, by name, and where in it: in the error and as text.
void name_memory(const Checker& checker, tk_error& error, Text& text, const void* where) {
  const tk_launch& request = *checker.worker->launch->request;
  const uint8_t* const address = static_cast<const uint8_t*>(where);
  const int64_t offset = address - checker.shared_begin;
  if (offset >= 0 && offset < checker.shared_bytes) return name_shared(request, error, text, offset);
  error.tensor = tensor_at(request, address);
  if (error.tensor < 0) return;
  const tk_tensor& tensor = request.tensor[error.tensor];
  error.byte_offset = address - tensor.begin;
  text.print("byte %lld of '%s'", static_cast<long long>(error.byte_offset), tensor.name);
}

// What an error says of the access that it stands at, and what to do.
void blame(const Checker& checker, tk_error& error, const Access& access, const char* hint) {
  error.line = line_of(access.site);
  error.pc = pc_of(access.site);
  error.block = block_idx(checker, access.block);
  error.thread = access.thread;
  error.accesses = 1;
  describe(checker, error.second, access);
  Text(error.hint, sizeof error.hint).print("%s", hint);
}

// And of the access that it conflicts with.
void blame_both(const Checker& checker, tk_error& error, const Conflict& conflict, const char* title) {
  error.accesses = 2;
  describe(checker, error.first, conflict.first);
  Text message = message_of(error);
  message.print("%s: ", title);
  name_memory(checker, error, message, conflict.address);
}

// Report an access, unless another error was first. `fill` writes the rest into the error.
template <class Fill>
[[noreturn]] void report(const Checker& checker, tk_kind kind, const Access& access, const char* hint, Fill fill) {
  {
    Critical guard;
    if (tk_error* error = claim_error(kind, line_of(access.site))) {
      blame(checker, *error, access, hint);
      fill(*error);
      publish_error();
    }
  }
  leave_block();
}

}  // namespace

void report_stop_at(Site site) { report_stop(line_of(site), pc_of(site)); }

void report_conflict(const Checker& checker, const Conflict& conflict) {
  const bool in_block = conflict.first.block == conflict.second.block;
  const tk_kind kind = conflict.under_way ? TK_COPY_UNDER_WAY : in_block ? TK_RACE : TK_GLOBAL_RACE;
  const bool edited = checker.worker->launch->request->edited != 0;
  report(checker, kind, conflict.second, hint_of(conflict.missing, edited), [&](tk_error& error) {
    blame_both(checker, error, conflict, title_of(conflict));
  });
}

void suspect(Checker& checker, const Conflict& conflict) {
  if (checker.suspect_count == kSuspects) return;
  Suspect& suspect = checker.suspects[checker.suspect_count++];
  suspect.conflict = conflict;
  memcpy(suspect.before, conflict.address, conflict.bytes);
}

void settle_suspects(Checker& checker) {
  const int count = checker.suspect_count;
  checker.suspect_count = 0;
  for (int i = 0; i < count; ++i) {
    const Suspect& suspect = checker.suspects[i];
    const bool changed = memcmp(suspect.before, suspect.conflict.address, suspect.conflict.bytes) != 0;
    if (changed) report_conflict(checker, suspect.conflict);
    repeated(checker, suspect.conflict);
  }
}

void repeated(Checker& checker, const Conflict& conflict) {
  if (conflict.first.block != conflict.second.block && !checker.same_value.bytes) checker.same_value = conflict;
}

void describe_same_value(const Checker& checker, tk_error& error) {
  error.kind = TK_GLOBAL_RACE;
  blame(checker, error, checker.same_value.second,
        "give each block its own part: the same work is done twice, and the first value that differs makes the result "
        "depend on their order");
  blame_both(checker, error, checker.same_value, "two blocks write the same value");
}

void report_unwritten_first() {
  Checker* const c = tk_worker ? checker() : nullptr;
  if (c == nullptr) return;
  if (c->unwritten.address) report_unwritten(*c, c->unwritten);
  if (c->unwritten_global.address) report_unwritten(*c, c->unwritten_global);
}

void describe_unwritten(const Checker& checker, tk_error& error, const Unwritten& unwritten) {
  error.kind = TK_UNINITIALIZED;
  blame(checker, error, unwritten.access, "write it first: what memory holds before that is anything");
  Text message = message_of(error);
  message.print("read before anything was written to it: ");
  name_memory(checker, error, message, unwritten.address);
}

void report_unwritten(const Checker& checker, const Unwritten& unwritten) {
  report(checker, TK_UNINITIALIZED, unwritten.access, "", [&](tk_error& error) {
    describe_unwritten(checker, error, unwritten);
  });
}

void report_global_bounds(const Checker& checker, const Access& access, const void* address, int bytes) {
  report_unwritten_first();
  report(checker, TK_OUT_OF_BOUNDS, access, "", [&](tk_error& error) {
    describe_near(error, *checker.worker->launch->request, static_cast<const uint8_t*>(address));
    if (bytes > 1) new_note(error, 0).print("the access has %d bytes", bytes);
  });
}

void report_shared_bounds(const Checker& checker, const Access& access, int buffer, uint32_t offset, int bytes) {
  report_unwritten_first();
  const tk_buffer& meant = checker.worker->launch->request->buffer[buffer];
  report(checker, TK_OUT_OF_BOUNDS, access, "", [&](tk_error& error) {
    error.is_shared = 1;
    error.buffer = buffer;
    error.byte_offset = static_cast<int64_t>(offset) - meant.offset;
    message_of(error).print("out-of-bounds access to shared tensor '%s': byte offset %lld, the tensor has %u bytes",
                            meant.name, static_cast<long long>(error.byte_offset), meant.bytes);
    if (bytes > 1) new_note(error, 0).print("the access has %d bytes", bytes);
  });
}

void fail_at(tk_kind kind, Site site, const char* format, ...) {
  report_unwritten_first();
  {
    Critical guard;
    if (tk_error* error = claim_error(kind, line_of(site))) {
      error->pc = pc_of(site);
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
