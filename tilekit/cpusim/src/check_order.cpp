// SPDX-License-Identifier: Apache-2.0
// Order within a block, by clocks of its warps, and between blocks, by what they released and acquired.
#include <stdlib.h>
#include <string.h>

#include "check.h"

namespace {

Released* find(const BlockClock& clock, uint64_t block) {
  int low = 0, high = clock.count;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (clock.at[middle].block < block) low = middle + 1;
    else high = middle;
  }
  return clock.at + low;
}

void reserve(BlockClock& clock, int count) {
  if (clock.capacity >= count) return;
  clock.capacity = 2 * count;
  clock.at = static_cast<Released*>(realloc(clock.at, sizeof(Released) * clock.capacity));
  if (clock.at == nullptr) abort();
}

void learn(BlockClock& clock, Released news) {
  Released* place = find(clock, news.block);
  const int index = static_cast<int>(place - clock.at);
  if (index < clock.count && place->block == news.block) {
    if (place->count < news.count) place->count = news.count;
    return;
  }
  reserve(clock, clock.count + 1);
  memmove(clock.at + index + 1, clock.at + index, sizeof(Released) * (clock.count - index));
  clock.at[index] = news;
  ++clock.count;
}

}  // namespace

void order_free(BlockClock& clock) {
  free(clock.at);
  clock = {};
}

void order_copy(BlockClock& to, const BlockClock& from) {
  reserve(to, from.count);
  if (from.count) memcpy(to.at, from.at, sizeof(Released) * from.count);
  to.count = from.count;
}

void order_merge(BlockClock& to, const BlockClock& from) {
  for (int i = 0; i < from.count; ++i) learn(to, from.at[i]);
}

void order_begin_block(Checker& checker, uint64_t block) {
  checker.block = block;
  checker.suspect_count = 0;
  checker.unwritten.address = nullptr;
  checker.sync_line_count = checker.last_sync_line = 0;
  for (int w = 0; w < checker.warps; ++w) checker.clock[w] = 1;
  memset(checker.known, 0, sizeof checker.known);
  checker.releases = 0;
  memset(checker.releases_of, 0, sizeof checker.releases_of);
  checker.blocks.count = checker.acquired.count = checker.released.count = 0;
}

void order_barrier(Checker& checker, uint32_t warps) {
  uint32_t joined[kMaxWarps] = {};
  for (int w = 0; w < checker.warps; ++w) {
    if (!(warps >> w & 1)) continue;
    for (int v = 0; v < checker.warps; ++v) {
      const uint32_t tick = v == w ? checker.clock[w] : checker.known[w][v];
      if (joined[v] < tick) joined[v] = tick;
    }
  }
  for (int w = 0; w < checker.warps; ++w) {
    if (!(warps >> w & 1)) continue;
    memcpy(checker.known[w], joined, sizeof joined);
    ++checker.clock[w];
  }
}

void order_acquire(Checker& checker, const void* semaphore) {
  Critical guard;
  global_take_over(*checker.global, semaphore, checker.acquired);
}

void order_acquired(Checker& checker) {
  if (!checker.acquired.count) return;
  Critical guard;
  order_merge(checker.blocks, checker.acquired);
  checker.acquired.count = 0;
}

void order_close_release(Checker& checker, int thread) {
  if (++checker.releases_of[thread] <= checker.releases) return;
  Critical guard;
  ++checker.releases;
  order_copy(checker.released, checker.blocks);
  learn(checker.released, {checker.block, checker.releases});
}

void order_release(Checker& checker, const void* semaphore) {
  Critical guard;
  global_hand_over(*checker.global, semaphore, checker.released);
}

uint32_t order_known_releases(const Checker& checker, uint64_t block) {
  const Released* place = find(checker.blocks, block);
  return place < checker.blocks.at + checker.blocks.count && place->block == block ? place->count : 0;
}
