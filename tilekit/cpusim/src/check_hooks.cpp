// SPDX-License-Identifier: Apache-2.0
// Where the calls end that the compiler puts into a kernel in check mode: __tsan_* in front of each load and store, and
// __ubsan_* where an index, a shift, a division or an alignment is wrong. The names and signatures are the compilers'.
#include <string.h>

#include "check.h"
#include "pages.h"

namespace {

enum : size_t { kPiece = 16 };

// The place in the kernel's library that a call came from.
Site site_of(const void* return_address) {
  const tk_image& image = tk_worker->launch->request->image;
  const uint8_t* const pc = static_cast<const uint8_t*>(return_address) - 1;
  return pc >= image.text && pc < image.text_end ? static_cast<Site>(pc - image.base) : 0;
}

void check_piece(Checker& checker, const uint8_t* address, int bytes, bool writes, Site site) {
  const Actor actor = actor_of(current_fiber());
  const int64_t offset = address - checker.shared_begin;
  if (offset >= 0 && offset + bytes <= checker.shared_bytes) {
    if (writes) shared_write(checker, actor, static_cast<uint32_t>(offset), bytes, site, kWrites, nullptr);
    else shared_read(checker, actor, static_cast<uint32_t>(offset), bytes, site, kReads);
    return;
  }
  if (offset >= -int64_t(kSharedGuard) && offset < int64_t(checker.shared_bytes + kSharedGuard)) {
    fail_at(TK_OUT_OF_BOUNDS, site, "out-of-bounds access to shared memory: byte offset %lld, the block has %u bytes",
            static_cast<long long>(offset), checker.shared_bytes);
  }
  if (writes) global_write(checker, actor, address, bytes, site, nullptr);
  else global_read(checker, actor, address, bytes, site, kReads);
}

[[gnu::noinline]] void check_access(Checker& checker, const uint8_t* address, size_t bytes, bool writes, Site site) {
  if (checker.suspect_count) settle_suspects(checker);
  while (bytes > kPiece) {
    check_piece(checker, address, kPiece, writes, site);
    address += kPiece;
    bytes -= kPiece;
  }
  if (bytes) check_piece(checker, address, static_cast<int>(bytes), writes, site);
}

// An access of the kernel's own, not through a tk:: function. Most are of the stack, which is nobody else's.
inline __attribute__((always_inline)) void access(const void* where, size_t bytes, bool writes, const void* caller) {
  Worker* const worker = tk_worker;
  if (worker == nullptr || worker->checker == nullptr) return;
  Checker& checker = *worker->checker;
  const uint8_t* const address = static_cast<const uint8_t*>(where);
  if (static_cast<size_t>(address - checker.stacks) < checker.stacks_bytes) return;
  check_access(checker, address, bytes, writes, site_of(caller));
}

// A tk:: function that loads or stores: the same with its line.
void global_access(const void* address, int bytes, bool writes, int line, const void* value) {
  Fiber& fiber = current_fiber();
  fiber.line = line;
  if (reinterpret_cast<uintptr_t>(address) % bytes) tk_rt_misaligned(address, bytes, line);
  Checker* const c = checker();
  if (c == nullptr) return;
  if (c->suspect_count) settle_suspects(*c);
  if (writes) global_write(*c, actor_of(fiber), address, bytes, site_of_line(line), value);
  else global_read(*c, actor_of(fiber), address, bytes, site_of_line(line), kReads);
}

void shared_access(const void* shared, int bytes, bool writes, int line, const void* value) {
  tk_rt_shared_access(shared, bytes, line);
  Checker* const c = checker();
  if (c == nullptr) return;
  if (c->suspect_count) settle_suspects(*c);
  const uint32_t offset = static_cast<uint32_t>(static_cast<const uint8_t*>(shared) - c->shared_begin);
  shared_require_inside(*c, offset, bytes, line);
  const Actor actor = actor_of(current_fiber());
  if (writes) shared_write(*c, actor, offset, bytes, site_of_line(line), kWrites, value);
  else shared_read(*c, actor, offset, bytes, site_of_line(line), kReads);
}

}  // namespace

// ------------------------------------------------------------------------------- loads and stores of tk:: functions

TK_EXPORT void tk_rt_registers_end(int bytes, int line) {
  fail_at(TK_OUT_OF_BOUNDS, site_of_line(line), "out of bounds of a register array: %d bytes are accessed at its end",
          bytes);
}

// In the lanes of a tile such a division gives 0, and nobody may look at it. A scalar has no such lanes.
TK_EXPORT void tk_rt_division_by_zero(int line) {
  const tk_launch& request = *tk_worker->launch->request;
  if (line < 1 || line > request.lines || request.line_buffer[line - 1] == -2) return;
  fail_at(TK_FLOAT_EXCEPTION, site_of_line(line), "integer division by zero");
}

TK_EXPORT void tk_rt_load_global(void* registers, const void* global, int bytes, int line) {
  global_access(global, bytes, false, line, nullptr);
  memcpy(registers, global, bytes);
}

TK_EXPORT void tk_rt_store_global(void* global, const void* registers, int bytes, int line) {
  global_access(global, bytes, true, line, registers);
  memcpy(global, registers, bytes);
}

TK_EXPORT void tk_rt_load_shared(void* registers, const void* shared, int bytes, int line) {
  shared_access(shared, bytes, false, line, nullptr);
  memcpy(registers, shared, bytes);
}

TK_EXPORT void tk_rt_store_shared(void* shared, const void* registers, int bytes, int line) {
  shared_access(shared, bytes, true, line, registers);
  memcpy(shared, registers, bytes);
}

// --------------------------------------------------------------------------------------------- -fsanitize=thread

#define TK_CALLER __builtin_return_address(0)
#define TK_ACCESS(bytes)                                                                                    \
  TK_EXPORT void __tsan_read##bytes(void* p) { access(p, bytes, false, TK_CALLER); }                        \
  TK_EXPORT void __tsan_write##bytes(void* p) { access(p, bytes, true, TK_CALLER); }                        \
  TK_EXPORT void __tsan_unaligned_read##bytes(void* p) { access(p, bytes, false, TK_CALLER); }              \
  TK_EXPORT void __tsan_unaligned_write##bytes(void* p) { access(p, bytes, true, TK_CALLER); }              \
  TK_EXPORT void __tsan_volatile_read##bytes(void* p) { access(p, bytes, false, TK_CALLER); }               \
  TK_EXPORT void __tsan_volatile_write##bytes(void* p) { access(p, bytes, true, TK_CALLER); }               \
  TK_EXPORT void __tsan_unaligned_volatile_read##bytes(void* p) { access(p, bytes, false, TK_CALLER); }     \
  TK_EXPORT void __tsan_unaligned_volatile_write##bytes(void* p) { access(p, bytes, true, TK_CALLER); }     \
  TK_EXPORT void __tsan_read_write##bytes(void* p) { access(p, bytes, true, TK_CALLER); }                   \
  TK_EXPORT void __tsan_unaligned_read_write##bytes(void* p) { access(p, bytes, true, TK_CALLER); }

TK_ACCESS(1)
TK_ACCESS(2)
TK_ACCESS(4)
TK_ACCESS(8)
TK_ACCESS(16)
#undef TK_ACCESS

TK_EXPORT void __tsan_read_range(void* p, size_t bytes) { access(p, bytes, false, TK_CALLER); }
TK_EXPORT void __tsan_write_range(void* p, size_t bytes) { access(p, bytes, true, TK_CALLER); }

TK_EXPORT void* __tsan_memset(void* to, int value, size_t bytes) {
  access(to, bytes, true, TK_CALLER);
  return memset(to, value, bytes);
}

TK_EXPORT void* __tsan_memcpy(void* to, const void* from, size_t bytes) {
  access(from, bytes, false, TK_CALLER);
  access(to, bytes, true, TK_CALLER);
  return memcpy(to, from, bytes);
}

TK_EXPORT void* __tsan_memmove(void* to, const void* from, size_t bytes) {
  access(from, bytes, false, TK_CALLER);
  access(to, bytes, true, TK_CALLER);
  return memmove(to, from, bytes);
}

TK_EXPORT void __tsan_init() {}
TK_EXPORT void __tsan_func_entry(void*) {}
TK_EXPORT void __tsan_func_exit() {}
TK_EXPORT void __tsan_vptr_update(void*, void*) {}
TK_EXPORT void __tsan_vptr_read(void*) {}

// Atomic operations race with nobody.
#define TK_ATOMIC(bits)                                                                                              \
  TK_EXPORT int##bits##_t __tsan_atomic##bits##_load(const int##bits##_t* p, int) {                                  \
    return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                                                     \
  }                                                                                                                  \
  TK_EXPORT void __tsan_atomic##bits##_store(int##bits##_t* p, int##bits##_t v, int) {                               \
    __atomic_store_n(p, v, __ATOMIC_SEQ_CST);                                                                        \
  }                                                                                                                  \
  TK_EXPORT int##bits##_t __tsan_atomic##bits##_exchange(int##bits##_t* p, int##bits##_t v, int) {                   \
    return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST);                                                              \
  }                                                                                                                  \
  TK_EXPORT int##bits##_t __tsan_atomic##bits##_fetch_add(int##bits##_t* p, int##bits##_t v, int) {                  \
    return __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST);                                                               \
  }                                                                                                                  \
  TK_EXPORT int##bits##_t __tsan_atomic##bits##_fetch_sub(int##bits##_t* p, int##bits##_t v, int) {                  \
    return __atomic_fetch_sub(p, v, __ATOMIC_SEQ_CST);                                                               \
  }                                                                                                                  \
  TK_EXPORT int##bits##_t __tsan_atomic##bits##_fetch_or(int##bits##_t* p, int##bits##_t v, int) {                   \
    return __atomic_fetch_or(p, v, __ATOMIC_SEQ_CST);                                                                \
  }                                                                                                                  \
  TK_EXPORT int##bits##_t __tsan_atomic##bits##_fetch_and(int##bits##_t* p, int##bits##_t v, int) {                  \
    return __atomic_fetch_and(p, v, __ATOMIC_SEQ_CST);                                                               \
  }                                                                                                                  \
  TK_EXPORT int __tsan_atomic##bits##_compare_exchange_strong(int##bits##_t* p, int##bits##_t* expected,             \
                                                              int##bits##_t v, int, int) {                           \
    return __atomic_compare_exchange_n(p, expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                   \
  }

TK_ATOMIC(32)
TK_ATOMIC(64)
#undef TK_ATOMIC

// ------------------------------------------------------------------------------------------- -fsanitize=undefined

namespace {

// As the compilers lay them out.
struct SourceLocation {
  const char* file;
  uint32_t line, column;
};
struct TypeDescriptor {
  uint16_t kind, info;
  char name[1];
};
struct OutOfBounds {
  SourceLocation at;
  const TypeDescriptor *array, *index;
};
struct Mismatch {
  SourceLocation at;
  const TypeDescriptor* type;
  uint8_t log_alignment, check;
};
struct Shift {
  SourceLocation at;
  const TypeDescriptor *left, *right;
};
struct Division {
  SourceLocation at;
  const TypeDescriptor* type;
};

bool on_stack(uintptr_t address) {
  const Checker* const c = checker();
  return c && address - reinterpret_cast<uintptr_t>(c->stacks) < c->stacks_bytes;
}

}  // namespace

// The numbers that these get are values as wide as a register, or pointers to wider ones.

TK_EXPORT void __ubsan_handle_out_of_bounds_abort(OutOfBounds* data, uintptr_t index) {
  fail_at(TK_OUT_OF_BOUNDS, site_of(TK_CALLER), "index %lld is out of bounds of a register array of type %s",
          static_cast<long long>(static_cast<intptr_t>(index)), data->array->name);
}
TK_EXPORT void __ubsan_handle_shift_out_of_bounds_abort(Shift* data, uintptr_t, uintptr_t by) {
  fail_at(TK_SHIFT, site_of(TK_CALLER), "shift of %s by %lld bits", data->left->name,
          static_cast<long long>(static_cast<intptr_t>(by)));
}
TK_EXPORT void __ubsan_handle_divrem_overflow_abort(Division* data, uintptr_t, uintptr_t) {
  fail_at(TK_FLOAT_EXCEPTION, site_of(TK_CALLER), "integer division by zero, or overflow in a division, of type %s",
          data->type->name);
}

// This one returns: the registers of a thread are arrays on its stack here, and have no alignment on a GPU.
TK_EXPORT void __ubsan_handle_type_mismatch_v1(Mismatch* data, uintptr_t address) {
  if (on_stack(address)) return;
  const unsigned long long alignment = 1ull << data->log_alignment;
  if (address & (alignment - 1)) {
    fail_at(TK_MISALIGNED, site_of(TK_CALLER),
            "access of type %s at an address that is no multiple of %llu: %p (a GPU traps here)", data->type->name,
            alignment, reinterpret_cast<void*>(address));
  }
}
