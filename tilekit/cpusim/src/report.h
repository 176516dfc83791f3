// SPDX-License-Identifier: Apache-2.0
// Errors: the first of a launch is written down, the block that made it is left, and the launch ends.
#pragma once
#include "machine.h"

// While one of these lives, the fiber is not torn away by a time-out: it holds a lock or is writing a report.
class Critical {
 public:
  Critical() { ++tk_worker->critical; }
  ~Critical();
  Critical(const Critical&) = delete;
};

// Text of bounded length, written piece by piece; what does not fit is cut off.
class Text {
 public:
  Text(char* begin, size_t bytes) : at_(begin), end_(begin + bytes) { *begin = 0; }
  void print(const char* format, ...) __attribute__((format(printf, 2, 3)));

 private:
  char *at_, *end_;
};

// The launch's error, to be filled in, if nobody was first; nullptr if somebody was, and leave_block() remains.
// Call it and what follows inside a Critical, and publish_error() at the end.
tk_error* claim_error(tk_kind kind, int line);
void publish_error();
// Something happened that the launch's watching thread must see.
void publish_news(const Launch& launch);
// A further fact, for print(); past TK_NOTES they all go to the last.
Text new_note(tk_error& error, int line);
Text message_of(tk_error& error);
void attribute(tk_error& error, const Fiber& fiber);

// The launch has been asked to stop: say where the current fiber was.
void describe_stop(tk_error& error);
void report_stop(int line, uint64_t pc = 0);
// The same from code at a site of check.h.
void report_stop_at(uint32_t site);

// The tensor that an address lies in; -1: none.
int tensor_at(const tk_launch& request, const void* address);
// Say which tensor an address missed, if it is so near to one that nothing else can be meant.
bool is_near_tensor(const tk_launch& request, const uint8_t* address);
bool describe_near(tk_error& error, const tk_launch& request, const uint8_t* address);

// Report in the name of the current fiber, and leave its block.
[[noreturn]] void fail(tk_kind kind, int line, const char* format, ...) __attribute__((format(printf, 3, 4)));

// "0-31,64": the set members among 0 .. count-1.
void print_ranges(Text& text, const bool* member, int count);
