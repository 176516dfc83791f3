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

const char* hint_of(const Conflict& conflict) {
  switch (conflict.missing) {
    case Missing::kSync: return "self.sync() is missing between the two";
    case Missing::kSyncWarp: return "self.sync(), or __syncwarp(), is missing between the two: lanes of a warp run in no order";
    case Missing::kSyncAfterWait:
      return "self.sync() is missing behind the wait for the copy: a thread waits for its own copies only";
    case Missing::kWait:
      return "copy_async_wait_all(), or copy_async_wait_group(n) behind a copy_async_commit_group(), is missing between the two";
    case Missing::kWaitAndSync:
      return "copy_async_wait_all() or copy_async_wait_group(n), and self.sync() behind it, are missing between the two";
    case Missing::kSyncBeforeCopy:
      return "self.sync() is missing before the copy: the buffer is filled again while it is in use";
    default:
      return "blocks run in any order and at the same time: let one wait for the other with lock_semaphore and "
             "release_semaphore, or give each its own part";
  }
}

void place(tk_error& error, Site site) {
  if (site >> 31) error.line = static_cast<int32_t>(site & 0x7fffffff);
  else error.pc = site;
}

tk_dim3 block_idx(const Checker& checker, uint64_t block) {
  const tk_dim3 grid = checker.worker->launch->request->grid;
  return {static_cast<uint32_t>(block % grid.x), static_cast<uint32_t>(block / grid.x % grid.y),
          static_cast<uint32_t>(block / grid.x / grid.y)};
}

void describe(const Checker& checker, tk_access& to, const Access& access) {
  to.line = access.site >> 31 ? static_cast<int32_t>(access.site & 0x7fffffff) : 0;
  to.pc = access.site >> 31 ? 0 : access.site;
  to.block = block_idx(checker, access.block);
  to.thread = access.thread;
  to.writes = is_write(access.verb);
  snprintf(to.verb, sizeof to.verb, "%s", verb_of(access.verb));
}

// The memory that holds an address, by name, and where in it: in the error and as text.
void name_memory(const Checker& checker, tk_error& error, Text& text, const uint8_t* address) {
  const tk_launch& request = *checker.worker->launch->request;
  const int64_t offset = address - checker.shared_begin;
  if (offset >= 0 && offset < checker.shared_bytes) {
    error.byte_offset = offset;
    error.is_shared = 1;
    for (int i = 0; i < request.buffers; ++i) {
      const tk_buffer& buffer = request.buffer[i];
      const bool meant = error.line > 0 && error.line <= request.lines && request.line_buffer[error.line - 1] >= 0;
      if (meant && request.line_buffer[error.line - 1] != i) continue;
      if (offset < buffer.offset || offset >= int64_t(buffer.offset) + buffer.bytes) continue;
      error.buffer = i;
      error.byte_offset = offset - buffer.offset;
      text.print("byte %lld of shared tensor '%s'", static_cast<long long>(error.byte_offset), buffer.name);
      return;
    }
    text.print("byte %lld of shared memory", static_cast<long long>(offset));
    return;
  }
  for (int i = 0; i < request.tensors; ++i) {
    const tk_tensor& tensor = request.tensor[i];
    if (address < tensor.begin || address >= tensor.begin + tensor.bytes) continue;
    error.tensor = i;
    error.byte_offset = address - tensor.begin;
    text.print("byte %lld of '%s'", static_cast<long long>(error.byte_offset), tensor.name);
    return;
  }
}

void attribute_access(const Checker& checker, tk_error& error, const Access& access) {
  error.block = block_idx(checker, access.block);
  error.thread = access.thread;
}

const char* title_of(const Conflict& conflict) {
  if (conflict.under_way) {
    return is_write(conflict.second.verb) ? "written while a copy into it is under way" : "read before the copy into it has arrived";
  }
  if (conflict.second.verb == kCopies && !is_write(conflict.first.verb)) return "refilled by a copy while it is read";
  if (conflict.first.block != conflict.second.block) {
    if (!is_write(conflict.second.verb)) return "race of two blocks, a read after a write";
    return is_write(conflict.first.verb) ? "race of two blocks, a write after a write"
                                         : "race of two blocks, a write after a read";
  }
  if (!is_write(conflict.second.verb)) return "race, a read after a write";
  return is_write(conflict.first.verb) ? "race, a write after a write" : "race, a write after a read";
}

}  // namespace

void report_stop_at(Site site) {
  report_stop(site >> 31 ? static_cast<int>(site & 0x7fffffff) : 0, site >> 31 ? 0 : site);
}

void report_conflict(const Checker& checker, const Conflict& conflict) {
  const bool in_block = conflict.first.block == conflict.second.block;
  const tk_kind kind = conflict.under_way ? TK_COPY_UNDER_WAY : in_block ? TK_RACE : TK_GLOBAL_RACE;
  {
    Critical guard;
    if (tk_error* error = claim_error(kind, 0)) {
      place(*error, conflict.second.site);
      attribute_access(checker, *error, conflict.second);
      describe(checker, error->first, conflict.first);
      describe(checker, error->second, conflict.second);
      error->accesses = 2;
      Text message = message_of(*error);
      message.print("%s: ", title_of(conflict));
      name_memory(checker, *error, message, conflict.address);
      Text hint(error->hint, sizeof error->hint);
      hint.print("%s", hint_of(conflict));
      publish_error();
    }
  }
  leave_block();
}

void suspect(Checker& checker, const Conflict& conflict) {
  if (checker.suspect.bytes || conflict.bytes > static_cast<int>(sizeof checker.suspect.before)) return;
  checker.suspect.bytes = conflict.bytes;
  checker.suspect.conflict = conflict;
  memcpy(checker.suspect.before, conflict.address, conflict.bytes);
}

void settle_suspect(Checker& checker) {
  const Suspect& suspect = checker.suspect;
  const bool changed = memcmp(suspect.before, suspect.conflict.address, suspect.bytes) != 0;
  checker.suspect.bytes = 0;
  if (changed) report_conflict(checker, suspect.conflict);
}

void report_unwritten_first() {
  Checker* const c = tk_worker ? checker() : nullptr;
  if (c == nullptr || !c->unwritten.bytes) return;
  const Unwritten open = c->unwritten;
  c->unwritten.bytes = 0;
  report_uninitialized(*c, open.access, open.address, open.bytes);
}

void report_uninitialized(const Checker& checker, const Access& access, const void* address, int) {
  {
    Critical guard;
    if (tk_error* error = claim_error(TK_UNINITIALIZED, 0)) {
      place(*error, access.site);
      attribute_access(checker, *error, access);
      describe(checker, error->second, access);
      error->accesses = 1;
      Text message = message_of(*error);
      message.print("read before anything was written to it: ");
      name_memory(checker, *error, message, static_cast<const uint8_t*>(address));
      Text hint(error->hint, sizeof error->hint);
      hint.print("write it first: what memory holds before that is anything");
      publish_error();
    }
  }
  leave_block();
}

void report_global_bounds(const Checker& checker, const Access& access, const void* address, int bytes) {
  report_unwritten_first();
  {
    Critical guard;
    if (tk_error* error = claim_error(TK_OUT_OF_BOUNDS, 0)) {
      place(*error, access.site);
      attribute_access(checker, *error, access);
      describe(checker, error->second, access);
      error->accesses = 1;
      describe_near(*error, *checker.worker->launch->request, static_cast<const uint8_t*>(address));
      if (bytes > 1) new_note(*error, 0).print("the access has %d bytes", bytes);
      publish_error();
    }
  }
  leave_block();
}

void report_shared_bounds(const Checker& checker, const Access& access, int buffer, uint32_t offset, int bytes) {
  report_unwritten_first();
  const tk_buffer& meant = checker.worker->launch->request->buffer[buffer];
  {
    Critical guard;
    if (tk_error* error = claim_error(TK_OUT_OF_BOUNDS, 0)) {
      place(*error, access.site);
      attribute_access(checker, *error, access);
      describe(checker, error->second, access);
      error->accesses = 1;
      error->is_shared = 1;
      error->buffer = buffer;
      error->byte_offset = static_cast<int64_t>(offset) - meant.offset;
      message_of(*error).print("out-of-bounds access to shared tensor '%s': byte offset %lld, the tensor has %u bytes",
                               meant.name, static_cast<long long>(error->byte_offset), meant.bytes);
      if (bytes > 1) new_note(*error, 0).print("the access has %d bytes", bytes);
      publish_error();
    }
  }
  leave_block();
}

void fail_at(tk_kind kind, Site site, const char* format, ...) {
  report_unwritten_first();
  {
    Critical guard;
    if (tk_error* error = claim_error(kind, 0)) {
      place(*error, site);
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
