// SPDX-License-Identifier: Apache-2.0
#include "pages.h"

#include <sys/mman.h>

namespace {

uint8_t* reserve(size_t bytes, int protection) {
  void* pages = mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return pages == MAP_FAILED ? nullptr : static_cast<uint8_t*>(pages);
}

}  // namespace

uint8_t* map_guarded(size_t bytes, size_t guard) {
  uint8_t* all = reserve(bytes + 2 * guard, PROT_NONE);
  if (all == nullptr) return nullptr;
  if (bytes && mprotect(all + guard, bytes, PROT_READ | PROT_WRITE)) {
    munmap(all, bytes + 2 * guard);
    return nullptr;
  }
  return all + guard;
}

void unmap_guarded(uint8_t* pages, size_t bytes, size_t guard) { munmap(pages - guard, bytes + 2 * guard); }

uint8_t* map_stacks(size_t count) {
  uint8_t* stacks = reserve(count * kStackBytes, PROT_READ | PROT_WRITE);
  if (stacks == nullptr) return nullptr;
  for (size_t i = 0; i < count; ++i) {
    if (mprotect(stacks + i * kStackBytes, kPage, PROT_NONE)) {  // the kernel's limit of mappings is reached
      unmap_stacks(stacks, count);
      return nullptr;
    }
  }
  return stacks;
}

void unmap_stacks(uint8_t* stacks, size_t count) { munmap(stacks, count * kStackBytes); }
