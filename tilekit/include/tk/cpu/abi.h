// SPDX-License-Identifier: Apache-2.0
// The C interface between three parties: a kernel compiled for the CPU, the runtime libtkcpu.so that emulates a GPU for
// it, and the Python worker that loads both and launches. cpusim/worker.py declares the same structures for ctypes.
#pragma once
#include <stddef.h>
#include <stdint.h>

struct tk_dim3 {
  uint32_t x, y, z;
};

// ---------------------------------------------------------------------------------------------- what a kernel may see

// One emulated CUDA thread, as device code sees it.
struct tk_thread {
  tk_dim3 thread_idx, block_idx, block_dim, grid_dim;
  uint8_t* shared;  // the block's shared memory
};

enum tk_shuffle { TK_SHUFFLE_IDX, TK_SHUFFLE_UP, TK_SHUFFLE_DOWN, TK_SHUFFLE_XOR };

enum tk_mma_kind {
  TK_MMA_M16N8K16_F16_F32,
  TK_MMA_M16N8K16_F16_F16,
  TK_MMA_M16N8K16_BF16_F32,
  TK_MMA_M16N8K8_TF32_F32,
  TK_MMA_M16N8K32_I8_I32,
  TK_MMA_M16N8K16_I8_I32,
  TK_MMA_M8N8K16_I8_I32,
};

// mi x ni x ki instructions of one kind, and the bytes between their fragments in the registers of a lane: those of d
// from one m and n to the next, of a from one m, k and 32-bit register to the next, of b likewise.
struct tk_mma_tile {
  int32_t kind, mi, ni, ki, dm, dn, am, ak, ar, bk, bn, br;
};

extern "C" {
// The emulated thread that this OS thread runs now.
extern __thread tk_thread* tk_current __attribute__((tls_model("initial-exec")));

// core
[[noreturn]] void tk_rt_fail(int line, const char* message);
[[noreturn]] void tk_rt_misaligned(const void* address, int bytes, int line);
int tk_rt_printf(int line, const char* format, ...) __attribute__((format(printf, 2, 3)));

// shared.h: what an access of shared memory must obey is checked here, and its bank conflicts are counted
void tk_rt_shared_access(const void* shared, int bytes, int line);

// In check mode: a register array ends before `bytes` more.
void tk_rt_registers_end(int bytes, int line);
// In check mode, of a division by zero.
void tk_rt_division_by_zero(int line);
// In check mode the functions of memory.h and shared.h are these, so that an access is known with its line and, if it
// is a write, with what it writes.
void tk_rt_load_global(void* registers, const void* global, int bytes, int line);
void tk_rt_store_global(void* global, const void* registers, int bytes, int line);
void tk_rt_load_shared(void* registers, const void* shared, int bytes, int line);
void tk_rt_store_shared(void* shared, const void* registers, int bytes, int line);

// matrix.h
void tk_rt_ldmatrix(void* registers, const void* row, int matrices, int transposed, int line);
void tk_rt_stmatrix(void* row, const void* registers, int matrices, int transposed, int line);

// mma.h
void tk_rt_mma(const tk_mma_tile* tile, void* d, const void* a, const void* b, const void* c, int line);

// async.h: zeros are copied where the mask does not hold
void tk_rt_cp_async(void* shared, const void* global, int bytes, int mask, int line);
void tk_rt_cp_async_commit_group();
void tk_rt_cp_async_wait_group(int under_way);
void tk_rt_cp_async_wait_all();

// semaphore.h
void tk_rt_lock_semaphore(const int32_t* semaphore, int32_t value, int line);
void tk_rt_release_semaphore(int32_t* semaphore, int32_t value, int line);

// sync.h: threads == 0 means every thread of the block that has not returned
void tk_rt_barrier(int barrier, int threads, int line);
int tk_rt_barrier_count(int predicate, int line);
void tk_rt_syncwarp(uint32_t mask, int line);

// warp.h
uint64_t tk_rt_shuffle(int kind, uint32_t mask, uint64_t value, int lane, int width, int line);
uint32_t tk_rt_ballot(uint32_t mask, int predicate, int line);
}

// ------------------------------------------------------------------------------------------------ what the worker sees

// Bytes of the caller that the kernel may touch, inside pages that are mapped for them: [mapped, mapped_end) lies
// between guard pages, and the bytes around [begin, end) in it are filled with a pattern that is checked afterwards.
struct tk_region {
  uint8_t *mapped, *begin, *end, *mapped_end;
};

// A pointer parameter: its name for messages, whether the kernel writes it, whether it holds nothing at the beginning.
struct tk_tensor {
  const uint8_t* begin;
  uint64_t bytes;
  const char* name;
  int32_t written, undefined;
};

// A tensor in shared memory, for messages.
struct tk_buffer {
  uint32_t offset, bytes;
  const char* name;
};

enum tk_kind {
  TK_OK,
  TK_FAIL,             // __trap(), assert, a rule of the machine that the kernel broke
  TK_DEADLOCK,         // no thread of a block can go on
  TK_DIVERGENCE,       // the lanes of a warp are not where a collective needs them
  TK_OUT_OF_BOUNDS,    // beside a tensor, or beside shared memory
  TK_MISALIGNED,       // a vector access at an address that is no multiple of its size
  TK_SEGFAULT,         // at an address that belongs to nobody
  TK_FLOAT_EXCEPTION,  // integer division by zero, which the CPU reports by this name
  TK_STACK_OVERFLOW,
  TK_TIMEOUT,
  TK_INTERRUPTED,
  // these are found in check mode
  TK_RACE,             // two accesses of one block that nothing orders
  TK_GLOBAL_RACE,      // two accesses of different blocks
  TK_COPY_UNDER_WAY,   // memory is touched while an asynchronous copy into it has not been waited for
  TK_UNINITIALIZED,    // memory is read that nobody has written
  TK_SHIFT,            // by a negative number of bits, or by more than there are
};

// Where a library is loaded, and where its code lies.
struct tk_image {
  const uint8_t *base, *text, *text_end;
};

struct tk_launch {
  void (*kernel)(void** arguments);
  void** arguments;
  tk_image image;     // of the kernel's library
  tk_dim3 grid, block;
  uint32_t shared_bytes;
  int32_t os_threads;
  uint64_t seed;      // 0: blocks in order, threads in order; else both in an order drawn from it
  double timeout_s;   // 0: none
  int32_t control;    // a descriptor; when it becomes readable or its peer is gone, the launch is interrupted
  int32_t regions;
  const tk_region* region;
  int32_t tensors;
  const tk_tensor* tensor;
  int32_t check;      // whether to check every access, of a kernel that was compiled for it
  int32_t strict;     // whether it is wrong, too, if two blocks write the same value to one place
  int32_t edited;     // whether a person has changed its source
  int32_t buffers;
  const tk_buffer* buffer;
  int32_t lines;
  const int16_t* line_buffer;  // for each line of source.cu the buffer that its accesses are meant for; -1: any; -2: it
                               // divides in the lanes of a tile, where zero may be a divisor
  uint64_t blocks;    // 0: all, else as many of them as `block_number` lists
  const uint64_t* block_number;
  uint64_t* finished; // counts the blocks that have ended, for one who watches; nullptr: nobody does
};

enum { TK_NOTES = 16, TK_NOTE_BYTES = 240, TK_MESSAGE_BYTES = 480 };

// A further fact about an error, with its line of source.cu (0: none).
struct tk_note {
  int32_t line;
  char text[TK_NOTE_BYTES];
};

// One of the accesses that an error is about.
struct tk_access {
  int32_t line;  // as in tk_error
  uint64_t pc;
  tk_dim3 block;
  int32_t thread;
  int32_t writes;
  char verb[32];
};

struct tk_error {
  int32_t kind;
  int32_t line;       // of source.cu; 0: unknown, then `pc` may tell
  uint64_t pc;        // relative to the image's base; 0: unknown
  int32_t tensor;     // index of the tensor that was missed; -1: none
  int64_t byte_offset;  // from its beginning, or from the beginning of shared memory
  tk_dim3 block;
  int32_t thread;     // in its block; -1: no single one
  int32_t notes;
  tk_note note[TK_NOTES];
  int32_t is_shared;  // it is about shared memory
  int32_t buffer;     // then the index of its tensor; -1: none
  int32_t accesses;   // 0, 1: `second`, or both
  tk_access first, second;
  char hint[TK_NOTE_BYTES];  // what to do
  char message[TK_MESSAGE_BYTES];
};

struct tk_counters {
  uint64_t blocks, threads, switches, collectives, barriers;
  uint64_t mma;             // instructions, each of a whole warp
  uint64_t copies;          // cp.async, each of a thread
  uint64_t copy_bytes;      // that they bring to shared memory
  uint64_t shared_bytes;    // that threads and warps read and write in shared memory, those copies included
  uint64_t bank_conflicts;  // times that lanes of a warp had to take turns in shared memory
};

struct tk_result {
  double seconds;
  tk_counters counters;
  tk_error error;
  const char* printed;  // what the kernel printed; valid until the next launch
  uint64_t printed_bytes;
  uint64_t printed_lost;  // calls of printf for whose text there was no room
};

extern "C" {
void tk_launch_kernel(const tk_launch* launch, tk_result* result);
void tk_image_of(const void* symbol, tk_image* image);
}
