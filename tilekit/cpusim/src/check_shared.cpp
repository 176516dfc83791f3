// SPDX-License-Identifier: Apache-2.0
// The shadow of shared memory: who wrote each byte last, and who has read it since.
//
// Shared memory is seen as lines of 16 bytes. Bytes that are always accessed together have one cell: a line begins with
// a single one and is cut into smaller ones, of 8, 4, 2 or 1 bytes, when an access asks for a part of it; a write of
// the whole line makes it one again. A cell keeps its last write, and of each warp the last read.
#include <stdlib.h>
#include <string.h>

#include "check.h"

namespace {

enum : uint32_t { kLine = 16, kLineShift = 4 };

enum State : uint8_t { kNothing, kWritten, kUnderWay };

struct Write {
  uint32_t tick;
  Site site;
  uint16_t thread;
  uint8_t lane;
  Verb verb;
  State state;
};

struct Read {
  uint32_t tick;  // 0: none
  Site site;
  uint8_t lane;
  Verb verb;
};

struct Line {
  uint32_t block;  // that these cells are of; those of an earlier one count for nothing
  uint8_t shift;   // a cell has 1 << shift bytes
};

}  // namespace

struct SharedShadow {
  uint32_t bytes, block;
  int warps;
  Line* lines;
  Write *whole_writes, *part_writes;  // by line; by byte, of which the first of each cell is used
  Read *whole_reads, *part_reads;     // the same, times the warps
};

namespace {

struct Cell {
  Write& write;
  Read* reads;
};

Cell cell_at(SharedShadow& s, uint32_t offset, int shift) {
  const size_t line = offset >> kLineShift;
  if (shift == kLineShift) return {s.whole_writes[line], s.whole_reads + line * s.warps};
  return {s.part_writes[offset], s.part_reads + static_cast<size_t>(offset) * s.warps};
}

Line& line_of(SharedShadow& s, uint32_t offset) {
  Line& line = s.lines[offset >> kLineShift];
  if (line.block == s.block) return line;
  line = {s.block, kLineShift};
  const Cell cell = cell_at(s, offset & ~(kLine - 1), kLineShift);
  cell.write = {};
  memset(cell.reads, 0, sizeof(Read) * s.warps);
  return line;
}

void cut(SharedShadow& s, Line& line, uint32_t begin, int shift) {
  const int old = line.shift;
  for (uint32_t i = kLine; i > 0;) {  // downwards, because the first part of a cell lies where the cell lay
    i -= uint32_t(1) << shift;
    const Cell from = cell_at(s, begin + (i >> old << old), old), to = cell_at(s, begin + i, shift);
    if (&from.write == &to.write) continue;
    to.write = from.write;
    memcpy(to.reads, from.reads, sizeof(Read) * s.warps);
  }
  line.shift = static_cast<uint8_t>(shift);
}

// Visit the cells of [offset, offset + bytes) with the first byte and the number of bytes of each.
template <class Visit>
void for_each_cell(SharedShadow& s, uint32_t offset, uint32_t bytes, Visit visit) {
  for (const uint32_t end = offset + bytes; offset < end;) {
    const uint32_t begin = offset & ~(kLine - 1);
    const uint32_t stop = end < begin + kLine ? end : begin + kLine;
    Line& line = line_of(s, offset);
    const int wanted = __builtin_ctz((offset - begin) | (stop - begin) | kLine);
    if (wanted < line.shift) cut(s, line, begin, wanted);
    const uint32_t step = uint32_t(1) << line.shift;
    for (; offset < stop; offset += step) visit(cell_at(s, offset, line.shift), offset, step);
  }
}

// After a write that made all cells of its lines equal.
void join_lines(SharedShadow& s, uint32_t offset, uint32_t bytes) {
  if (offset % kLine) return;
  for (; bytes >= kLine; offset += kLine, bytes -= kLine) {
    Line& line = line_of(s, offset);
    if (line.shift == kLineShift) continue;
    const Cell part = cell_at(s, offset, line.shift), whole = cell_at(s, offset, kLineShift);
    whole.write = part.write;
    memset(whole.reads, 0, sizeof(Read) * s.warps);
    line.shift = kLineShift;
  }
}

bool is_own(Actor actor, const Write& write) {
  return write.thread == actor.thread && write.lane == actor.lane && actor.lane < kWholeWarp;
}

Access access_of(const Checker& checker, const Write& write) {
  return {checker.block, write.thread, write.site, write.verb};
}

Conflict conflict_of(const Checker& checker, const Access& first, const Access& second, Missing missing,
                     uint32_t offset, uint32_t bytes) {
  return {first, second, missing, false, checker.shared_begin + offset, static_cast<int32_t>(bytes)};
}

Missing missing_between(Actor actor, const Write& write) {
  if (write.verb == kCopies) return Missing::kSyncAfterWait;
  return write.thread / kWarpSize == actor.warp ? Missing::kSyncWarp : Missing::kSync;
}

// Nobody may touch what is being copied.
void require_landed(const Checker& checker, Actor actor, const Write& write, const Access& now, uint32_t offset,
                    uint32_t bytes) {
  if (write.state != kUnderWay) return;
  const Missing missing = is_own(actor, write) ? Missing::kWait : Missing::kWaitAndSync;
  Conflict conflict = conflict_of(checker, access_of(checker, write), now, missing, offset, bytes);
  conflict.under_way = true;
  report_conflict(checker, conflict);
}

// The first read of the cell by somebody else that is not done for the actor.
void require_read(const Checker& checker, Actor actor, const Read* reads, const Access& now, uint32_t offset,
                  uint32_t bytes) {
  for (int w = 0; w < checker.warps; ++w) {
    const Read& read = reads[w];
    if (read.tick <= checker.known[actor.warp][w]) continue;
    if (w == actor.warp && read.lane == actor.lane && actor.lane < kWholeWarp) continue;
    const int lane = read.lane < kWarpSize ? read.lane : 0;
    const Access first = {checker.block, w * kWarpSize + lane, read.site, read.verb};
    const bool in_warp = w == actor.warp;
    const Missing missing = now.verb == kCopies ? Missing::kSyncBeforeCopy
                            : in_warp           ? Missing::kSyncWarp
                                                : Missing::kSync;
    report_conflict(checker, conflict_of(checker, first, now, missing, offset, bytes));
  }
}

void write_cells(Checker& checker, Actor actor, uint32_t offset, int bytes, Site site, Verb verb, State state,
                 const void* value) {
  SharedShadow& s = *checker.shared;
  const Access now = access_now(checker, actor, site, verb);
  const Write mine = {checker.clock[actor.warp], site, actor.thread, actor.lane, verb, state};
  for_each_cell(s, offset, bytes, [&](Cell cell, uint32_t at, uint32_t size) {
    Write& write = cell.write;
    require_landed(checker, actor, write, now, at, size);
    if (write.state && !is_own(actor, write) && !is_done(checker, actor, write.thread / kWarpSize, write.tick)) {
      const Missing missing = missing_between(actor, write);
      const Conflict conflict = conflict_of(checker, access_of(checker, write), now, missing, at, size);
      const uint8_t* const bits = static_cast<const uint8_t*>(value);
      if (verb == kWrites && !bits) suspect(checker, conflict);
      else if (!bits || memcmp(conflict.address, bits + (at - offset), size)) report_conflict(checker, conflict);
    }
    require_read(checker, actor, cell.reads, now, at, size);
    write = mine;
    memset(cell.reads, 0, sizeof(Read) * s.warps);
  });
  join_lines(s, offset, bytes);
}

// The tensor that a line of the source is about; -1: none, or any.
int buffer_of(const tk_launch& request, Site site) {
  const uint32_t line = site & 0x7fffffff;
  return site >> 31 && line <= static_cast<uint32_t>(request.lines) ? request.line_buffer[line - 1] : -1;
}

// Whether bytes were written as one tensor and are read as another, which lies there since.
bool is_anothers(const Checker& checker, Site written, Site read) {
  const tk_launch& request = *checker.worker->launch->request;
  if (written == read || request.lines == 0) return false;
  const int from = buffer_of(request, written), to = buffer_of(request, read);
  return from >= 0 && to >= 0 && from != to;
}

template <class T>
bool allocate(T*& array, size_t count) {
  array = static_cast<T*>(calloc(count, sizeof(T)));
  return array != nullptr;
}

}  // namespace

SharedShadow* shared_new(uint32_t bytes, int warps) {
  SharedShadow* s = static_cast<SharedShadow*>(calloc(1, sizeof(SharedShadow)));
  if (s == nullptr) return nullptr;
  const size_t lines = bytes / kLine + 1, all = lines * kLine;
  s->bytes = bytes;
  s->warps = warps;
  const bool there = allocate(s->lines, lines) && allocate(s->whole_writes, lines) &&
                     allocate(s->whole_reads, lines * warps) && allocate(s->part_writes, all) &&
                     allocate(s->part_reads, all * warps);
  if (there) return s;
  shared_free(s);
  return nullptr;
}

void shared_free(SharedShadow* s) {
  if (s == nullptr) return;
  free(s->lines);
  free(s->whole_writes);
  free(s->whole_reads);
  free(s->part_writes);
  free(s->part_reads);
  free(s);
}

bool shared_fits(const SharedShadow& s, uint32_t bytes, int warps) { return s.bytes >= bytes && s.warps == warps; }

void shared_begin_block(Checker& checker) { ++checker.shared->block; }

void shared_read(Checker& checker, Actor actor, uint32_t offset, int bytes, Site site, Verb verb) {
  SharedShadow& s = *checker.shared;
  const Access now = access_now(checker, actor, site, verb);
  const uint32_t tick = checker.clock[actor.warp];
  for_each_cell(s, offset, bytes, [&](Cell cell, uint32_t at, uint32_t size) {
    const Write& write = cell.write;
    const bool unwritten = write.state == kNothing || is_anothers(checker, write.site, site);
    if (unwritten && !checker.unwritten.address) checker.unwritten = {checker.shared_begin + at, now};
    require_landed(checker, actor, write, now, at, size);
    if (write.state && !is_done(checker, actor, write.thread / kWarpSize, write.tick) && !is_own(actor, write)) {
      const Missing missing = missing_between(actor, write);
      report_conflict(checker, conflict_of(checker, access_of(checker, write), now, missing, at, size));
    }
    Read& read = cell.reads[actor.warp];
    const bool another = read.tick == tick && read.lane != actor.lane;
    read = {tick, site, another ? static_cast<uint8_t>(kManyLanes) : actor.lane, verb};
  });
}

void shared_write(Checker& checker, Actor actor, uint32_t offset, int bytes, Site site, Verb verb, const void* value) {
  write_cells(checker, actor, offset, bytes, site, verb, kWritten, value);
}

void shared_copy_begins(Checker& checker, Actor actor, uint32_t offset, int bytes, Site site) {
  write_cells(checker, actor, offset, bytes, site, kCopies, kUnderWay, nullptr);
}

void shared_copy_lands(Checker& checker, Actor actor, uint32_t offset, int bytes, Site site) {
  const Write landed = {checker.clock[actor.warp], site, actor.thread, actor.lane, kCopies, kWritten};
  for_each_cell(*checker.shared, offset, bytes, [&](Cell cell, uint32_t, uint32_t) { cell.write = landed; });
}

void shared_require_inside(const Checker& checker, uint32_t offset, int bytes, int line) {
  const tk_launch& request = *checker.worker->launch->request;
  if (line < 1 || line > request.lines) return;
  const int buffer = request.line_buffer[line - 1];
  if (buffer < 0) return;
  const tk_buffer& meant = request.buffer[buffer];
  if (offset >= meant.offset && offset + bytes <= meant.offset + meant.bytes) return;
  const Access now = access_now(checker, actor_of(current_fiber()), site_of_line(line), kReads);
  report_shared_bounds(checker, now, buffer, offset, bytes);
}
