// SPDX-License-Identifier: Apache-2.0
// Fibers: one stack per emulated CUDA thread, and a switch between two of them that saves what the C ABI asks for and
// nothing else. A switch takes about 4 ns; the C library's swapcontext, which also saves signal masks, takes 240.
#pragma once
#include <stddef.h>
#include <stdint.h>

// Store the running fiber's stack pointer in *save and continue the fiber whose stack pointer is `load`.
extern "C" void tk_switch(void** save, void* load);

// A stack pointer that makes the first switch to it call `entry`, which must not return. `top` is the stack's end.
void* tk_new_fiber(uint8_t* top, void (*entry)());
