// SPDX-License-Identifier: Apache-2.0
// printf of a kernel: collected here and handed over with the result. One call is never mixed with another.
#include "print.h"

#include <stdarg.h>
#include <stdio.h>

#include "report.h"

namespace {

enum : size_t { kPrintBytes = 1 << 20 };  // as much as CUDA keeps; what does not fit is dropped
char buffer[kPrintBytes];
size_t used;
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

}  // namespace

void clear_printed() { used = 0; }

void hand_over_printed(tk_result& result) {
  result.printed = buffer;
  result.printed_bytes = used;
}

TK_EXPORT int tk_rt_printf(int line, const char* format, ...) {
  current_fiber().line = line;
  va_list arguments;
  va_start(arguments, format);
  const int wanted = vsnprintf(nullptr, 0, format, arguments);  // if an argument makes it fault, then with no lock held
  va_end(arguments);
  Critical guard;
  pthread_mutex_lock(&mutex);
  const bool fits = wanted >= 0 && used + wanted < kPrintBytes;
  if (fits) {
    va_start(arguments, format);
    vsnprintf(buffer + used, kPrintBytes - used, format, arguments);
    va_end(arguments);
  }
  if (fits) used += wanted;
  pthread_mutex_unlock(&mutex);
  return fits ? wanted : -1;
}
