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

Line& line_at(const Region& region, const uint8_t* address) {
  const uintptr_t first = reinterpret_cast<uintptr_t>(region.begin) / kLine;
  return region.lines[reinterpret_cast<uintptr_t>(address) / kLine - first];
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

// What an access does to the bytes of a cell.
enum Effect : uint8_t { kLeaves, kRepeats, kChanges, kMayChange };

// What is wrong with an access, the worst last. kRepeated: a write that says what an unordered one said before.
// kSuspect: one of which that is not known yet.
enum Wrong : uint8_t { kFine, kRepeated, kSuspect, kUndefined, kConflict };

struct Finding {
  Wrong wrong;
  Verb verb;  // of the access that was first
  Stamp first;
  const uint8_t* address;
  int32_t bytes;
};

struct Findings {
  Finding worst, suspects[kLine];
  int32_t suspect_count;
};

void note_read(const Checker& checker, Actor actor, Cell& cell, const Stamp& mine) {
  Stamp& place = is_ordered(checker, actor, cell.reads[0]) ? cell.reads[0] : cell.reads[1];
  place = mine;
}

Finding check_write(const Checker& checker, Actor actor, const Cell& cell, Effect effect) {
  const bool raced = !is_ordered(checker, actor, cell.write);
  if (raced && effect == kChanges) return {kConflict, kWrites, cell.write, nullptr, 0};
  for (const Stamp& read : cell.reads) {
    if (!is_ordered(checker, actor, read)) return {kConflict, kReads, read, nullptr, 0};
  }
  if (!raced) return {};
  return {effect == kRepeats ? kRepeated : kSuspect, kWrites, cell.write, nullptr, 0};
}

Finding check_cell(const Checker& checker, Actor actor, Cell& cell, const Stamp& mine, Effect effect) {
  Finding finding = {};
  if (effect == kLeaves) {
    if (!is_ordered(checker, actor, cell.write)) finding = {kConflict, kWrites, cell.write, nullptr, 0};
    else if (cell.write.block == kNobody) finding.wrong = kUndefined;
    note_read(checker, actor, cell, mine);
    return finding;
  }
  finding = check_write(checker, actor, cell, effect);
  cell.write = mine;
  cell.reads[0].block = cell.reads[1].block = 0;
  return finding;
}

// Part of one line. `value`: what is written, if that is known, and then it is.
void check_line(Checker& checker, const Region& region, Actor actor, uint8_t* address, uint32_t bytes, Site site,
                bool writes, const uint8_t* value, Findings& findings) {
  const Stamp mine = {checker.block + 1, checker.clock[actor.warp], checker.releases, site, actor.thread};
  const uint32_t begin = reinterpret_cast<uintptr_t>(address) % kLine, stop = begin + bytes;
  Line& line = line_at(region, address);
  const Locked lock(*checker.global, address, site);
  const int wanted = __builtin_ctz(begin | stop | kLine);
  if (line.cells == nullptr || wanted < line.shift) cut(*checker.global, region, line, wanted);
  const uint32_t step = uint32_t(1) << line.shift;
  for (uint32_t at = 0; at < bytes; at += step) {
    Effect effect = writes ? kMayChange : kLeaves;
    if (value) effect = memcmp(address + at, value + at, step) ? kChanges : kRepeats;
    Finding finding = check_cell(checker, actor, line.cells[(begin + at) >> line.shift], mine, effect);
    if (finding.wrong == kFine) continue;
    finding.address = address + at;
    finding.bytes = static_cast<int32_t>(step);
    if (finding.wrong == kSuspect) findings.suspects[findings.suspect_count++] = finding;
    if (finding.wrong > findings.worst.wrong) findings.worst = finding;
  }
  if (value) memcpy(address, value, bytes);
}

Missing missing_between(const Checker& checker, Actor actor, const Stamp& first) {
  if (first.block != checker.block + 1) return Missing::kSemaphore;
  return first.thread / kWarpSize == actor.warp ? Missing::kSyncWarp : Missing::kSync;
}

Conflict conflict_of(const Checker& checker, Actor actor, const Finding& finding, const Access& now) {
  const Access first = {finding.first.block - 1, finding.first.thread, finding.first.site, finding.verb};
  return {first, now, missing_between(checker, actor, finding.first), false, finding.address, finding.bytes};
}

void note_unwritten(Checker& checker, const uint8_t* address, const Access& now) {
  if (!checker.unwritten_global.address) checker.unwritten_global = {address, now};
}

void tell(Checker& checker, Actor actor, const Findings& findings, const Access& now) {
  const Finding& worst = findings.worst;
  if (worst.wrong == kUndefined) return note_unwritten(checker, worst.address, now);
  const Conflict conflict = conflict_of(checker, actor, worst, now);
  if (worst.wrong == kConflict) report_conflict(checker, conflict);
  if (worst.wrong == kRepeated) repeated(checker, conflict);
  for (int i = 0; i < findings.suspect_count; ++i) {
    suspect(checker, conflict_of(checker, actor, findings.suspects[i], now));
  }
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

void access(Checker& checker, Actor actor, const void* where, int bytes, Site site, Verb verb, const void* what) {
  const uint8_t *address = static_cast<const uint8_t*>(where), *value = static_cast<const uint8_t*>(what);
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
    Findings findings;
    findings.worst.wrong = kFine;
    findings.suspect_count = 0;
    check_line(checker, *region, actor, const_cast<uint8_t*>(address), part, site, writes, value, findings);
    if (findings.worst.wrong != kFine) tell(checker, actor, findings, access_now(checker, actor, site, verb));
    address += part;
    if (value) value += part;
  }
}

// The cell of a semaphore, in memory that held nothing at the beginning; nullptr if it lies elsewhere, where it need not
// be looked at.
Cell* semaphore_cell(Checker& checker, Actor actor, const uint8_t* address, Site site) {
  if (!find_tensor(checker, address, sizeof(int32_t))) {
    if (is_near_tensor(*checker.worker->launch->request, address)) {
      report_global_bounds(checker, access_now(checker, actor, site, kReads), address, sizeof(int32_t));
    }
    return nullptr;
  }
  const Region* const region = find_region(*checker.global, address);
  if (region == nullptr || region->lines == nullptr || !region->undefined) return nullptr;
  Line& line = line_at(*region, address);
  const Locked lock(*checker.global, address, site);
  const int shift = __builtin_ctz(sizeof(int32_t));
  if (line.cells == nullptr || shift < line.shift) cut(*checker.global, *region, line, shift);
  return &line.cells[reinterpret_cast<uintptr_t>(address) % kLine >> line.shift];
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

void global_look_at_semaphore(Checker& checker, Actor actor, const int32_t* semaphore, Site site) {
  const uint8_t* const address = reinterpret_cast<const uint8_t*>(semaphore);
  if (Cell* const cell = semaphore_cell(checker, actor, address, site)) {
    if (cell->write.block == kNobody) report_unwritten(checker, {address, access_now(checker, actor, site, kReads)});
  }
}

void global_set_semaphore(Checker& checker, Actor actor, const int32_t* semaphore, Site site) {
  const uint8_t* const address = reinterpret_cast<const uint8_t*>(semaphore);
  if (Cell* const cell = semaphore_cell(checker, actor, address, site)) *cell = {};
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
