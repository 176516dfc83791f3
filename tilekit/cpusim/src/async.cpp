// SPDX-License-Identifier: Apache-2.0
// cp.async: copies are made when they are waited for, which is as late as PTX allows, so that a missing wait is seen.
#include <stdlib.h>
#include <string.h>

#include "check.h"

namespace {

// Room for one copy more: where those lay that are done, or in more memory if they are few.
void make_room(Copies& copies) {
  const int32_t under_way = copies.count - copies.first;
  if (2 * under_way < copies.capacity) {
    memmove(copies.copy, copies.copy + copies.first, sizeof(Copy) * under_way);
    copies.first = 0;
    copies.count = under_way;
    return;
  }
  Critical guard;  // a fiber that is torn away would leave the heap locked
  copies.capacity = copies.capacity ? 2 * copies.capacity : 32;
  copies.copy = static_cast<Copy*>(realloc(copies.copy, sizeof(Copy) * copies.capacity));
  if (copies.copy == nullptr) abort();
}

void perform(const Copy& copy) {
  if (copy.zeros) {
    memset(copy.to, 0, copy.bytes);
    return;
  }
  switch (copy.bytes) {  // of known sizes, so that no function is called and a fault is found to be ours
    case 4: __builtin_memcpy(copy.to, copy.from, 4); break;
    case 8: __builtin_memcpy(copy.to, copy.from, 8); break;
    default: __builtin_memcpy(copy.to, copy.from, 16);
  }
}

void land(Checker& checks, const Fiber& fiber, const Copy& copy) {
  const uint32_t offset = static_cast<uint32_t>(copy.to - checks.shared_begin);
  shared_copy_lands(checks, actor_of(fiber), offset, copy.bytes, site_of_line(copy.line));
}

// Make those copies whose group comes before `end`.
void perform_before(Fiber& fiber, uint32_t end) {
  Copies& copies = fiber.copies;
  const int line = fiber.line;
  Checker* const checks = checker();
  while (copies.first < copies.count && copies.copy[copies.first].group < end) {
    const Copy& copy = copies.copy[copies.first++];
    fiber.line = copy.line;  // whatever is wrong is wrong there
    perform(copy);
    if (checks) land(*checks, fiber, copy);
  }
  fiber.line = line;
  if (copies.first == copies.count) copies.first = copies.count = 0;
}

// The source is looked at now, and the destination belongs to the copy from now on.
void begin_checked(Checker& checks, const void* shared, const void* global, int bytes, int line) {
  const Actor actor = actor_of(current_fiber());
  const uint32_t offset = static_cast<uint32_t>(static_cast<const uint8_t*>(shared) - checks.shared_begin);
  shared_require_inside(checks, offset, bytes, line);
  if (global) global_read(checks, actor, global, bytes, site_of_line(line), kReads);
  shared_copy_begins(checks, actor, offset, bytes, site_of_line(line));
}

}  // namespace

void finish_copies(Fiber& fiber) { perform_before(fiber, ~uint32_t(0)); }

TK_EXPORT void tk_rt_cp_async(void* shared, const void* global, int bytes, int mask, int line) {
  Fiber& fiber = current_fiber();
  fiber.line = line;
  note_access(shared_offset(shared, bytes, line), bytes, line);
  if (mask && reinterpret_cast<uintptr_t>(global) % bytes) tk_rt_misaligned(global, bytes, line);
  if (Checker* const c = checker()) begin_checked(*c, shared, mask ? global : nullptr, bytes, line);
  memset(shared, kSharedFill, bytes);
  Copies& copies = fiber.copies;
  if (copies.count == copies.capacity) make_room(copies);
  Copy& copy = copies.copy[copies.count++];
  copy.to = static_cast<uint8_t*>(shared);
  copy.from = static_cast<const uint8_t*>(global);
  copy.zeros = !mask;
  copy.bytes = bytes;
  copy.line = line;
  copy.group = copies.group;
  ++tk_worker->counters.copies;
  tk_worker->counters.copy_bytes += bytes;
}

TK_EXPORT void tk_rt_cp_async_commit_group() { ++current_fiber().copies.group; }

TK_EXPORT void tk_rt_cp_async_wait_group(int under_way) {
  Fiber& fiber = current_fiber();
  const uint32_t committed = fiber.copies.group, allowed = under_way;
  if (committed > allowed) perform_before(fiber, committed - allowed);
}

TK_EXPORT void tk_rt_cp_async_wait_all() { finish_copies(current_fiber()); }
