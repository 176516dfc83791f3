// SPDX-License-Identifier: Apache-2.0
#include "fiber.h"

#if defined(__x86_64__)

// Leave by `ret`, not by `jmp`: the return predictor then follows the switch, which is worth a factor of two.
asm(R"(
.text
.globl tk_switch
.hidden tk_switch
.type tk_switch,@function
tk_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size tk_switch, .-tk_switch
)");

void* tk_new_fiber(uint8_t* top, void (*entry)()) {
  constexpr int kSavedRegisters = 6;
  void** sp = reinterpret_cast<void**>(reinterpret_cast<uintptr_t>(top) & ~uintptr_t(15));
  *--sp = nullptr;  // where a caller's return address would be, so that `entry` finds the stack aligned as the ABI says
  *--sp = reinterpret_cast<void*>(entry);
  for (int i = 0; i < kSavedRegisters; ++i) *--sp = nullptr;
  return sp;
}

#elif defined(__aarch64__)

asm(R"(
.text
.globl tk_switch
.hidden tk_switch
.type tk_switch,%function
tk_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size tk_switch, .-tk_switch
)");

void* tk_new_fiber(uint8_t* top, void (*entry)()) {
  constexpr int kFrameWords = 20, kReturnAddress = 11;  // x30 of the frame above
  uint64_t* sp = reinterpret_cast<uint64_t*>(reinterpret_cast<uintptr_t>(top) & ~uintptr_t(15)) - kFrameWords;
  for (int i = 0; i < kFrameWords; ++i) sp[i] = 0;
  sp[kReturnAddress] = reinterpret_cast<uint64_t>(entry);
  return sp;
}

#else
#error "the CPU simulator switches fibers on x86-64 and aarch64 only"
#endif
