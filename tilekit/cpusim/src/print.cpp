// SPDX-License-Identifier: Apache-2.0
// printf of a kernel: collected here and handed over with the result. One call is never mixed with another.
#include "print.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "report.h"

namespace {

// It grows as a kernel prints; past the most, further calls are counted and no more. What CUDA keeps stays at hand.
enum : size_t { kKeptBytes = 1 << 20, kMostBytes = 16 << 20 };
char* buffer;
size_t capacity, used;
uint64_t lost;
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

bool have_room(size_t wanted) {
  if (used + wanted <= capacity) return true;
  size_t grown = capacity ? capacity : static_cast<size_t>(kKeptBytes);
  while (grown < used + wanted) grown *= 2;
  char* const moved = grown > kMostBytes ? nullptr : static_cast<char*>(realloc(buffer, grown));
  if (moved == nullptr) return false;
  buffer = moved;
  capacity = grown;
  return true;
}

}  // namespace

void clear_printed() {
  used = lost = 0;
  if (capacity <= kKeptBytes) return;
  free(buffer);
  buffer = nullptr;
  capacity = 0;
}

void hand_over_printed(tk_result& result) {
  result.printed = buffer;
  result.printed_bytes = used;
  result.printed_lost = lost;
}

TK_EXPORT int tk_rt_printf(int line, const char* format, ...) {
  current_fiber().line = line;
  va_list arguments;
  va_start(arguments, format);
  const int wanted = vsnprintf(nullptr, 0, format, arguments);  // if an argument makes it fault, then with no lock held
  va_end(arguments);
  Critical guard;
  pthread_mutex_lock(&mutex);
  const bool fits = wanted >= 0 && have_room(wanted + 1);
  if (fits) {
    va_start(arguments, format);
    vsnprintf(buffer + used, capacity - used, format, arguments);
    va_end(arguments);
    used += wanted;
  } else {
    ++lost;
  }
  pthread_mutex_unlock(&mutex);
  return fits ? wanted : -1;
}
