// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include <stdlib.h>

#include "pages.h"

bool equip_checker(Worker& worker, GlobalShadow* global) {
  const Block& block = worker.block;
  Checker* checker = worker.spare_checker;
  if (checker == nullptr) {
    checker = worker.spare_checker = static_cast<Checker*>(calloc(1, sizeof(Checker)));
    if (checker == nullptr) return false;
  }
  if (checker->shared && !shared_fits(*checker->shared, block.shared_bytes, block.warp_count)) {
    shared_free(checker->shared);
    checker->shared = nullptr;
  }
  if (checker->shared == nullptr) checker->shared = shared_new(block.shared_bytes, block.warp_count);
  if (checker->shared == nullptr) return false;
  checker->worker = &worker;
  checker->global = global;
  checker->stacks = worker.stacks;
  checker->stacks_bytes = worker.stack_count * kStackBytes;
  checker->shared_begin = worker.shared_begin;
  checker->shared_bytes = block.shared_bytes;
  checker->warps = block.warp_count;
  checker->tensor = -1;
  checker->same_value.bytes = 0;
  checker->unwritten_global.address = nullptr;
  worker.checker = checker;
  return true;
}
