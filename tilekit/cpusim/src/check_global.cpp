// SPDX-License-Identifier: Apache-2.0
// Tensors: every access must lie within one, and of those that the kernel writes there is a shadow like that of shared
// memory, which all workers use together. Its accesses know their block: blocks run in any order, and one is done for
// another only if that one has acquired what it released.
#include <stdlib.h>
#include <string.h>

#include "check.h"

namespace {

enum : uint32_t { kLine = 16, kLineShift = 4 };
enum : size_t { kChunkBytes = size_t(1) << 20, kLocks = 1024 };
const uint64_t kNobody = ~uint64_t(0);  // the block of bytes that nothing was written to

// A block's number plus 1; 0 is the one who launched.
struct Stamp {
  uint64_t block;
  uint32_t tick, releases;
  Site site;
  uint16_t thread;
};

struct Cell {
  Stamp write, reads[2];  // two readers that are in no order; a third one takes the place of the second
};

struct Line {
  Cell* cells;    // nullptr: as it was at the beginning
  uint8_t shift;  // a cell has 1 << shift bytes
};

struct Region {
  const uint8_t *begin, *end;
  Line* lines;     // nullptr: nothing here is written
  bool undefined;  // at the beginning
};

struct Chunk {
  Chunk* next;
  size_t used;
};

struct Semaphore {
  const void* address;
  BlockClock clock;
};

}  // namespace

struct GlobalShadow {
  const tk_launch* request;
  Region* regions;
  uint8_t locks[kLocks];  // of lines, by their addresses
  pthread_mutex_t mutex;  // of what follows
  Chunk* chunks;
  Semaphore* semaphores;
  int32_t semaphore_count, semaphore_capacity;
};

namespace {

Cell* new_cells(GlobalShadow& shadow, int count) {
  const size_t bytes = sizeof(Cell) * count;
  pthread_mutex_lock(&shadow.mutex);
  Chunk* chunk = shadow.chunks;
  if (chunk == nullptr || chunk->used + bytes > kChunkBytes) {
    chunk = static_cast<Chunk*>(calloc(1, kChunkBytes));
    if (chunk == nullptr) abort();
    *chunk = {shadow.chunks, sizeof(Chunk)};
    shadow.chunks = chunk;
  }
  Cell* cells = reinterpret_cast<Cell*>(reinterpret_cast<uint8_t*>(chunk) + chunk->used);
  chunk->used += bytes;
  pthread_mutex_unlock(&shadow.mutex);
  return cells;
}

void cut(GlobalShadow& shadow, const Region& region, Line& line, int shift) {
  const int count = kLine >> shift;
  Cell* const cells = new_cells(shadow, count);
  for (int i = 0; i < count; ++i) {
    if (line.cells) cells[i] = line.cells[i << shift >> line.shift];
    else if (region.undefined) cells[i].write.block = kNobody;
  }
  line = {cells, static_cast<uint8_t>(shift)};
}

// What goes on with a line's lock held. It must not be torn away meanwhile, nor leave; so what it finds is told behind.
class Locked {
 public:
  Locked(GlobalShadow& shadow, const uint8_t* address, Site site) : site_(site) {
    ++tk_worker->critical;
    lock_ = &shadow.locks[reinterpret_cast<uintptr_t>(address) / kLine % kLocks];
    while (__atomic_exchange_n(lock_, 1, __ATOMIC_ACQUIRE)) {
    }
  }
  ~Locked() {
    __atomic_store_n(lock_, 0, __ATOMIC_RELEASE);
    if (--tk_worker->critical > 0 || !tk_worker->stop_requested) return;
    tk_worker->stop_requested = 0;
    report_stop_at(site_);
    leave_block();
  }
  Locked(const Locked&) = delete;

 private:
  uint8_t* lock_;
  Site site_;
};

bool is_ordered(const Checker& checker, Actor actor, const Stamp& stamp) {
  if (stamp.block == 0 || stamp.block == kNobody) return true;
  if (stamp.block != checker.block + 1) return order_known_releases(checker, stamp.block - 1) > stamp.releases;
  return stamp.thread == actor.thread || is_done(checker, actor, stamp.thread / kWarpSize, stamp.tick);
}

struct Finding {
  enum Kind : uint8_t { kFine, kUndefined, kConflict } kind;
  bool maybe;  // a write of one block that may repeat what is there
  const uint8_t* address;
  int32_t bytes;
  Stamp first;
  Verb verb;
};

void look(const Checker& checker, Actor actor, const Stamp& stamp, Verb verb, Finding& finding) {
  if (finding.kind != Finding::kFine || is_ordered(checker, actor, stamp)) return;
  finding.kind = Finding::kConflict;
  finding.maybe = false;
  finding.first = stamp;
  finding.verb = verb;
}

void note_read(const Checker& checker, Actor actor, Cell& cell, const Stamp& mine) {
  Stamp& place = is_ordered(checker, actor, cell.reads[0]) ? cell.reads[0] : cell.reads[1];
  place = mine;
}

void check_cell(const Checker& checker, Actor actor, Cell& cell, const Stamp& mine, bool writes, Finding& finding) {
  look(checker, actor, cell.write, kWrites, finding);
  if (writes) {
    if (finding.kind == Finding::kConflict) finding.maybe = finding.first.block == mine.block;
    look(checker, actor, cell.reads[0], kReads, finding);
    look(checker, actor, cell.reads[1], kReads, finding);
    cell.write = mine;
    cell.reads[0].block = cell.reads[1].block = 0;
    return;
  }
  if (cell.write.block == kNobody && finding.kind == Finding::kFine) finding.kind = Finding::kUndefined;
  note_read(checker, actor, cell, mine);
}

// Part of one line. Returns the first thing that is wrong.
Finding check_line(Checker& checker, const Region& region, Actor actor, const uint8_t* address, uint32_t bytes,
                   Site site, bool writes) {
  Finding finding = {};
  const Stamp mine = {checker.block + 1, checker.clock[actor.warp], checker.releases, site, actor.thread};
  const uint32_t begin = reinterpret_cast<uintptr_t>(address) % kLine, stop = begin + bytes;
  const uintptr_t first_line = reinterpret_cast<uintptr_t>(region.begin) / kLine;
  Line& line = region.lines[reinterpret_cast<uintptr_t>(address) / kLine - first_line];
  const Locked lock(*checker.global, address, site);
  const int wanted = __builtin_ctz(begin | stop | kLine);
  if (line.cells == nullptr || wanted < line.shift) cut(*checker.global, region, line, wanted);
  for (uint32_t at = begin; at < stop; at += uint32_t(1) << line.shift) {
    const bool was_fine = finding.kind == Finding::kFine;
    check_cell(checker, actor, line.cells[at >> line.shift], mine, writes, finding);
    if (was_fine && finding.kind != Finding::kFine) {
      finding.address = address + (at - begin);
      finding.bytes = 1 << line.shift;
    }
  }
  return finding;
}

Missing missing_between(const Checker& checker, Actor actor, const Stamp& first) {
  if (first.block != checker.block + 1) return Missing::kSemaphore;
  return first.thread / kWarpSize == actor.warp ? Missing::kSyncWarp : Missing::kSync;
}

void tell(Checker& checker, Actor actor, const Finding& finding, Site site, Verb verb, const uint8_t* address,
          const void* value) {
  const Access now = access_now(checker, actor, site, verb);
  if (finding.kind == Finding::kUndefined) report_uninitialized(checker, now, finding.address);
  const Access first = {finding.first.block - 1, finding.first.thread, finding.first.site, finding.verb};
  const Conflict conflict = {first, now, missing_between(checker, actor, finding.first), false, finding.address,
                             finding.bytes};
  if (!finding.maybe) report_conflict(checker, conflict);
  const uint8_t* const bits = static_cast<const uint8_t*>(value);
  if (bits == nullptr) return suspect(checker, conflict);
  const bool repeats = memcmp(finding.address, bits + (finding.address - address), finding.bytes) == 0;
  if (!repeats) report_conflict(checker, conflict);
}

bool holds(const tk_tensor& tensor, const uint8_t* address, int bytes) {
  return address >= tensor.begin && address + bytes <= tensor.begin + tensor.bytes;
}

// Have `checker.tensor` be one that the bytes belong to; false if they belong to none.
bool find_tensor(Checker& checker, const uint8_t* address, int bytes) {
  const tk_launch& request = *checker.worker->launch->request;
  if (checker.tensor >= 0 && holds(request.tensor[checker.tensor], address, bytes)) return true;
  for (int i = 0; i < request.tensors; ++i) {
    if (!holds(request.tensor[i], address, bytes)) continue;
    checker.tensor = i;
    return true;
  }
  return false;
}

const Region* find_region(const GlobalShadow& shadow, const uint8_t* address) {
  for (int i = 0; i < shadow.request->regions; ++i) {
    const Region& region = shadow.regions[i];
    if (address >= region.begin && address < region.end) return &region;
  }
  return nullptr;
}

void access(Checker& checker, Actor actor, const void* where, int bytes, Site site, Verb verb, const void* value) {
  const uint8_t* address = static_cast<const uint8_t*>(where);
  const bool writes = verb == kWrites;
  if (!find_tensor(checker, address, bytes)) {
    // elsewhere it is memory of the machine itself, such as parameters, or it faults
    if (is_near_tensor(*checker.worker->launch->request, address)) {
      report_global_bounds(checker, access_now(checker, actor, site, verb), address, bytes);
    }
    return;
  }
  const Region* const region = find_region(*checker.global, address);
  if (region == nullptr || region->lines == nullptr) return;
  for (const uint8_t* const end = address + bytes; address < end;) {
    uint32_t part = kLine - reinterpret_cast<uintptr_t>(address) % kLine;
    if (address + part > end) part = static_cast<uint32_t>(end - address);
    const Finding finding = check_line(checker, *region, actor, address, part, site, writes);
    if (finding.kind != Finding::kFine) tell(checker, actor, finding, site, verb, address, value);
    address += part;
    if (value) value = static_cast<const uint8_t*>(value) + part;
  }
}

bool add_region(Region& region, const tk_region& from, const tk_launch& request) {
  region.begin = from.begin;
  region.end = from.end;
  bool written = false;
  for (int i = 0; i < request.tensors; ++i) {
    const tk_tensor& tensor = request.tensor[i];
    if (tensor.begin < from.begin || tensor.begin >= from.end) continue;
    written |= tensor.written != 0;
    region.undefined |= tensor.undefined != 0;
  }
  if (!written) return true;
  const size_t lines = (from.end - from.begin) / kLine + 2;
  region.lines = static_cast<Line*>(calloc(lines, sizeof(Line)));
  return region.lines != nullptr;
}

}  // namespace

GlobalShadow* global_new(const tk_launch& request) {
  GlobalShadow* shadow = static_cast<GlobalShadow*>(calloc(1, sizeof(GlobalShadow)));
  if (shadow == nullptr) return nullptr;
  shadow->request = &request;
  pthread_mutex_init(&shadow->mutex, nullptr);
  shadow->regions = static_cast<Region*>(calloc(request.regions + 1, sizeof(Region)));
  bool there = shadow->regions != nullptr;
  for (int i = 0; there && i < request.regions; ++i) there = add_region(shadow->regions[i], request.region[i], request);
  if (there) return shadow;
  global_free(shadow);
  return nullptr;
}

void global_free(GlobalShadow* shadow) {
  if (shadow == nullptr) return;
  for (int i = 0; shadow->regions && i < shadow->request->regions; ++i) free(shadow->regions[i].lines);
  free(shadow->regions);
  while (Chunk* const chunk = shadow->chunks) {
    shadow->chunks = chunk->next;
    free(chunk);
  }
  for (int i = 0; i < shadow->semaphore_count; ++i) order_free(shadow->semaphores[i].clock);
  free(shadow->semaphores);
  pthread_mutex_destroy(&shadow->mutex);
  free(shadow);
}

void global_read(Checker& checker, Actor actor, const void* address, int bytes, Site site, Verb verb) {
  access(checker, actor, address, bytes, site, verb, nullptr);
}

void global_write(Checker& checker, Actor actor, const void* address, int bytes, Site site, const void* value) {
  access(checker, actor, address, bytes, site, kWrites, value);
}

void global_hand_over(GlobalShadow& shadow, const void* semaphore, const BlockClock& clock) {
  pthread_mutex_lock(&shadow.mutex);
  int i = 0;
  while (i < shadow.semaphore_count && shadow.semaphores[i].address != semaphore) ++i;
  if (i == shadow.semaphore_count) {
    if (i == shadow.semaphore_capacity) {
      shadow.semaphore_capacity = i ? 2 * i : 16;
      const size_t bytes = sizeof(Semaphore) * shadow.semaphore_capacity;
      shadow.semaphores = static_cast<Semaphore*>(realloc(shadow.semaphores, bytes));
      if (shadow.semaphores == nullptr) abort();
    }
    shadow.semaphores[shadow.semaphore_count++] = {semaphore, {}};
  }
  order_copy(shadow.semaphores[i].clock, clock);
  pthread_mutex_unlock(&shadow.mutex);
}

void global_take_over(GlobalShadow& shadow, const void* semaphore, BlockClock& clock) {
  pthread_mutex_lock(&shadow.mutex);
  for (int i = 0; i < shadow.semaphore_count; ++i) {
    if (shadow.semaphores[i].address == semaphore) order_merge(clock, shadow.semaphores[i].clock);
  }
  pthread_mutex_unlock(&shadow.mutex);
}
