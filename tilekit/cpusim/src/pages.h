// SPDX-License-Identifier: Apache-2.0
// Memory between guard pages, so that running over its end faults.
#pragma once
#include <stddef.h>
#include <stdint.h>

enum : size_t {
  kPage = 4096,
  kStackBytes = 128 * 1024,       // of a fiber, its guard page included
  kSharedGuard = 16 * 1024 * 1024,  // on either side of shared memory
};

// Readable and writable pages with `guard` bytes on either side that are not; nullptr if there is no memory.
uint8_t* map_guarded(size_t bytes, size_t guard);
void unmap_guarded(uint8_t* pages, size_t bytes, size_t guard);

// `count` stacks of kStackBytes, one above the other, the lowest page of each a guard.
uint8_t* map_stacks(size_t count);
void unmap_stacks(uint8_t* stacks, size_t count);
