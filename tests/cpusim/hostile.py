# SPDX-License-Identifier: Apache-2.0
"""Kernels that attack the process they run in: a correct one with a hostile statement put into it, drawn by a seed.

A family is a kind of attack. `source(family)` is one file with a kernel for each seed, so that a family costs one
compile. Nothing here reaches beyond the process, its children and its session.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass

SEEDS = range(20)

PROLOGUE = """\
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>
#include <tk/tk.h>

#define FOREVER for (volatile int on = 1; on;)

static jmp_buf saved;
static volatile int sink;
static void *volatile kept;

static uint64_t draw(uint64_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}
static void *loop(void *) {
  FOREVER sink = sink + 1;
  return nullptr;
}
static void *crash(void *) {
  *(volatile int *)16 = 1;
  return nullptr;
}
static void *scribble(void *begin) {
  usleep(20000);
  for (;;) *(volatile char *)begin = *(volatile char *)begin + 1;
}
static void stay(int) {
  FOREVER sink = sink + 1;
}
static void swallow(int) {}
static __attribute__((noinline)) int descend(int depth) {
  volatile char frame[200];
  memset((void *)frame, depth, sizeof frame);
  return frame[depth % 200] + descend(depth + 1);
}
static __attribute__((noinline)) void leave_mark() {
  if (setjmp(saved)) sink = sink + 1;
}
static void to_every_descriptor(const void *data, size_t bytes, int first) {
  for (int fd = first; fd < 64; ++fd) {
    fcntl(fd, F_SETFL, O_NONBLOCK);
    const char *at = (const char *)data;
    for (size_t left = bytes; left;) {
      const ssize_t done = write(fd, at, left);
      if (done <= 0) break;
      at += done;
      left -= done;
    }
  }
}
"""

# what is right: y[i] is x of the mirrored place in the block, plus that of the neighboring lane
KERNEL = """
extern "C" __global__ void @name(int32_t n, float *x, float *y)
{
  float *s = tk::shared_ptr<float>(0);
  int32_t i = blockIdx.x * blockDim.x + threadIdx.x;
@at0
  s[threadIdx.x] = i < n ? x[i] : 0.0f;
  __syncthreads();
@at1
  float v = s[blockDim.x - 1 - threadIdx.x];
  v += tk::shfl_xor(v, 1);
@at2
  __syncthreads();
  if (i < n)
    y[i] = v;
@at3
}
TK_KERNEL(@name)
"""
PLACES = ("@at0", "@at1", "@at2", "@at3")
WHO = ("i == 0", "threadIdx.x == {lane}", "threadIdx.x % 32 == {lane}", "threadIdx.x < 32", "blockIdx.x == 1", "i >= 0")

Draw = Callable[[random.Random], str]


@dataclass(frozen=True)
class Family:
    """`deed` draws the statements, for one thread if `alone`; `fails`: no launch with them may count as a success."""

    deed: Draw
    fails: bool = True
    alone: bool = False


def any_of(*deeds: str | Draw) -> Draw:
    """One of the texts, with {byte}, {bits}, {size} ... drawn."""

    def draw(rng: random.Random) -> str:
        deed = rng.choice(deeds)
        return _filled(rng, deed) if isinstance(deed, str) else deed(rng)

    return draw


def _filled(rng: random.Random, text: str) -> str:
    drawn = {
        "byte": f"{rng.randrange(256)}",
        "bits": f"{rng.getrandbits(63) | 1:#x}ull",
        "address": rng.choice(ADDRESSES)(rng),
        "size": f"{int(2 ** rng.uniform(4, 20))}",
        "pages": f"{rng.randrange(1, 64)}",
        "huge": f"{int(2 ** rng.uniform(28, 46))}ull",
        "status": f"{rng.randrange(256)}",
        "signal": f"{rng.choice(SIGNALS)}",
        "count": f"{rng.randrange(1, 9)}",
        "start": f"{rng.randrange(0, 12)}",
        "text": rng.choice(ANSWERS),
    }
    for name, value in drawn.items():
        text = text.replace("{" + name + "}", value)
    return text


ADDRESSES: tuple[Draw, ...] = (
    lambda rng: f"{rng.getrandbits(64):#x}ull",
    lambda rng: f"{rng.getrandbits(47):#x}ull",
    lambda rng: f"{rng.getrandbits(16):#x}ull",
    lambda rng: f"((uint64_t)x + {rng.randrange(-(1 << 36), 1 << 36)})",
    lambda rng: f"((uint64_t)s + {rng.randrange(-(1 << 28), 1 << 28)})",
    lambda rng: f"((uint64_t)&s + {rng.randrange(-(1 << 20), 1 << 20)})",
    lambda rng: f"((uint64_t)&loop + {rng.randrange(-(1 << 14), 1 << 14)})",
    lambda rng: f"((uint64_t)&tk_launch_kernel + {rng.randrange(-(1 << 17), 1 << 17)})",
    lambda rng: f"((uint64_t)tk_current + {rng.randrange(-(1 << 12), 1 << 12)})",
)
# all that end or disturb a process, real-time ones included; those that stop it are a family of their own
SIGNALS = [n for n in range(1, 65) if n not in (18, 19, 20, 21, 22, 32, 33)]
ANSWERS = (
    r"\n",
    r"\n\n\n",
    r"{}\n",
    r"null\n[1]\n",
    r"{\"seconds\": 0.0, \"counters\": {}, \"printed\": \"\"}\n",
    r"{\"error\": 3}\n",
    r"{\"refused\": \"no\"}\n",
    r"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
    r"{\"say\": \"launch\"}\n",
    r"\xff\xfe\x00garbage\n",
)

FAMILIES = {
    "wild_write": Family(any_of("*(volatile uint32_t *){address} = {byte};"), fails=False),
    "wild_read": Family(any_of("y[0] = *(volatile float *){address};"), fails=False),
    "scattered_writes": Family(
        any_of("for (uint64_t k = {size}, r = {bits}; k; --k) *(volatile char *)({address} + draw(&r) % 65536) = k;"),
        fails=False,
    ),
    "wild_jump": Family(
        any_of(
            "((void (*)()){bits})();",
            "((void (*)())0)();",
            "((void (*)())x)();",
            "((void (*)())s)();",
            "((void (*)())&s)();",
            'asm volatile(".byte 0x0f, 0x0b");',
            'asm volatile("int3");',
            'asm volatile("hlt");',
            'asm volatile("cli");',
        )
    ),
    "stack_smashed": Family(
        any_of(
            "memset((void *)&s, {byte}, {size});",
            "memset((char *)__builtin_frame_address(0) - 8, {byte}, {size});",
            "((void **)__builtin_frame_address(0))[1] = (void *){bits};",
            "((void **)__builtin_frame_address(0))[0] = (void *){bits};",
            "uint64_t r = {bits}; for (int k = 0; k < 64; ++k) ((uint64_t *)__builtin_frame_address(0))[k] = draw(&r);",
            'asm volatile("movq %0, %%rsp; pushq %%rax" : : "r"({bits}));',
            'asm volatile("xorl %%esp, %%esp; ret" : : : "memory");',
        ),
        fails=False,
    ),
    "other_stacks": Family(
        any_of(
            "memset((char *)&s - (1 << 17) * {count}, {byte}, {size});",
            "memset((char *)&s + (1 << 17) * {count}, {byte}, {size});",
        ),
        fails=False,
    ),
    "signals": Family(
        any_of(
            "raise({signal});",
            "kill(getpid(), {signal});",
            "pthread_kill(pthread_self(), {signal});",
            "syscall(SYS_tgkill, getpid(), getpid(), {signal});",
            "kill(0, {signal});",
        ),
        fails=False,
    ),
    "deadly_signals": Family(
        any_of(
            *(
                f"{how};"
                for signal in ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT", "SIGKILL", "SIGTERM", "SIGTRAP")
                for how in (f"raise({signal})", f"kill(getpid(), {signal})")
            )
        )
    ),
    "stops": Family(
        any_of(
            "raise(SIGSTOP);",
            "kill(getpid(), SIGSTOP);",
            "kill(0, SIGSTOP);",
            "FOREVER kill(getpid(), SIGSTOP);",
            "signal(SIGCONT, stay); kill(getpid(), SIGSTOP);",
        )
    ),
    "endless": Family(
        any_of(
            "FOREVER sink = sink + 1;",
            "FOREVER {}",
            "FOREVER FOREVER y[0] += 1.0f;",
            "FOREVER memset((void *)y, 0, 4 * n);",
            "FOREVER sched_yield();",
            "FOREVER getppid();",
            "FOREVER pause();",
            "sleep(1000);",
            "poll(nullptr, 0, -1);",
            "sem: goto sem;",
            'FOREVER printf("%d ", i);',
            "FOREVER free(malloc({size}));",
            "pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; pthread_mutex_lock(&m); pthread_mutex_lock(&m);",
            "stay(0);",
            "int two[2]; pipe(two); read(two[0], two, 1);",
        )
    ),
    "endless_together": Family(
        any_of(
            "FOREVER v_ += tk::shfl_xor(v_, 1);",
            "FOREVER __syncthreads();",
            "FOREVER sink = tk::ballot(true);",
            "FOREVER tk::bar_sync(1, 32);",
            "FOREVER tk::lock_semaphore((int32_t *)y, {status} + 1);",
            "FOREVER tk::lock_semaphore((int32_t *)y, *(int32_t *)y);",
            "if (threadIdx.x % 2) FOREVER sink = sink + 1; else tk::shfl_xor(v_, 1);",
            "if (threadIdx.x % 2) tk::shfl_xor(v_, 1); else FOREVER __syncwarp(0x55555555u);",
            "__syncthreads(); if (threadIdx.x == 0) FOREVER {} __syncthreads();",
        )
    ),
    "unstoppable": Family(
        any_of(
            "sigset_t all; sigfillset(&all); pthread_sigmask(SIG_BLOCK, &all, nullptr); FOREVER {}",
            "for (int k = 1; k < 65; ++k) signal(k, SIG_IGN); FOREVER {}",
            "for (int k = 1; k < 65; ++k) signal(k, stay); FOREVER {}",
            "for (int k = 1; k < 65; ++k) signal(k, swallow); FOREVER {}",
            "signal(SIGUSR2, (void (*)(int)){bits}); FOREVER {}",
            "tk_current = nullptr; FOREVER {}",
            'asm volatile("xorl %%esp, %%esp; 1: jmp 1b" : : : "memory");',
            "if (i == 0) vfork(); FOREVER {}",
        )
    ),
    "stack_used_up": Family(
        any_of(
            "volatile char big[130000 + {size}]; for (int k = 0; k < (int)sizeof big; k += 64) big[k] = k;",
            "char *big = (char *)__builtin_alloca(1 << 20); memset(big, {byte}, 1 << 20); sink = big[i];",
            "volatile char big[n * 4096]; big[i] = 1; memset((void *)big, {byte}, sizeof big); sink = big[n];",
            "sink = descend({byte});",
            "volatile char big[1 << 25]; big[{size}] = 1;",
        )
    ),
    "heap_used_up": Family(
        any_of(
            "FOREVER memset(malloc(1 << 20), {byte}, 1 << 20);",
            "for (volatile long k = 0;; ++k) *(volatile char *)malloc(1 << 24) = 1;",
            "FOREVER *(volatile char *)calloc(1, {size} + 4096) = 1;",
            "kept = memset(malloc({huge}), {byte}, {huge}); FOREVER {}",
            "FOREVER memset(mmap(nullptr, 1 << 24, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1, 1 << 24);",
            "char *p = (char *)malloc(1); for (size_t k = 1;; k *= 2) { p = (char *)realloc(p, k); p[k - 1] = 1; }",
            "FOREVER *(volatile char *)mmap(nullptr, 1ull << 40, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) = 1;",
            "sbrk({huge}); FOREVER sbrk(1 << 24);",
            "free((void *){address}); free(x);",
            "void *p = malloc({size}); free(p); free(p); memset(p, {byte}, {size}); free(malloc({size}));"
            " FOREVER malloc({size});",
        )
    ),
    "exits": Family(
        any_of(
            "exit({status});",
            "_exit({status});",
            "quick_exit({status});",
            "abort();",
            "syscall(SYS_exit_group, {status});",
            "syscall(SYS_exit, {status});",
            "pthread_exit(nullptr);",
            "_exit(75);",
            "_exit(76);",
            "__builtin_trap();",
            'execl("/bin/true", "true", (char *)nullptr);',
            'execl("/bin/sleep", "sleep", "100", (char *)nullptr);',
        )
    ),
    "descriptors": Family(
        any_of(
            "for (int fd = {start}; fd < 256; ++fd) close(fd);",
            "syscall(436, {start}, ~0u, 0);",
            "for (int fd = 3; fd < 64; ++fd) dup2(0, fd);",
            'int null = open("/dev/zero", O_RDWR); for (int fd = 0; fd < 64; ++fd) dup2(null, fd);',
            "for (int fd = 0; fd < 64; ++fd) shutdown(fd, {count} % 3);",
            "for (int fd = 0; fd < 64; ++fd) ftruncate(fd, 0);",
            "for (int fd = 0; fd < 64; ++fd) ftruncate(fd, 1ull << 40);",
            "char c; for (int fd = 0; fd < 64; ++fd) { fcntl(fd, F_SETFL, O_NONBLOCK); read(fd, &c, 1); }",
            "while (dup(1) >= 0) {}",
            "int two[2]; while (!pipe(two)) {} malloc(1 << 20);",
        ),
        fails=False,
    ),
    "floods": Family(
        any_of(
            "for (int k = 0; k < {size}; ++k) to_every_descriptor(x, 4 * n, 1);",
            'FOREVER write(1, "flood ", 6);',
            "FOREVER write(2, x, 4 * n);",
            "memset(y, {byte}, 4 * n); FOREVER to_every_descriptor(y, 4 * n, 1);",
            'write(2, "one\\ntwo\\n\\xff\\x00\\033[2J", 13); abort();',
            'for (int k = 0; k < 3000; ++k) printf("%0400d\\n", k); abort();',
        ),
        fails=False,
    ),
    "protocol": Family(
        any_of(
            'to_every_descriptor("{text}", sizeof "{text}" - 1, 3);',
            'for (int k = 0; k < 1000; ++k) to_every_descriptor("{text}", sizeof "{text}" - 1, 3);',
            'to_every_descriptor("{text}", sizeof "{text}" - 1, 3); _exit(0);',
            'FOREVER to_every_descriptor("{text}", sizeof "{text}" - 1, 3);',
            "uint64_t r = {bits}; char data[4096]; for (int k = 0; k < 4096; ++k) data[k] = draw(&r);"
            " to_every_descriptor(data, sizeof data, 3);",
        ),
        fails=False,
    ),
    "forks": Family(
        any_of(
            "if (fork() == 0) _exit(0);",
            "fork();",
            "if (fork() == 0) FOREVER sink = sink + 1;",
            "if (fork() == 0) sleep(1000);",
            "if (fork() == 0) abort();",
            "if (fork()) abort(); else sleep(1000);",
            "if (fork()) _exit({status}); else sleep(1000);",
            "if (fork() == 0) { for (int fd = 0; fd < 64; ++fd) close(fd); sleep(1000); }",
            "if (fork() == 0) { signal(SIGTERM, SIG_IGN); signal(SIGHUP, SIG_IGN); sleep(1000); }",
            'if (fork() == 0) execl("/bin/sleep", "sleep", "1000", (char *)nullptr);',
            'system("sleep 1000 &");',
            "if (fork() == 0) { if (fork() == 0) sleep(1000); _exit(0); }",
            'to_every_descriptor("x", 1, 3); if (fork()) FOREVER {} else sleep(1000);',
        ),
        alone=True,
    ),
    "threads": Family(
        any_of(
            "pthread_t t; pthread_create(&t, nullptr, loop, nullptr);",
            "pthread_t t; for (int k = 0; k < {count}; ++k) pthread_create(&t, nullptr, loop, nullptr);",
            "pthread_t t; pthread_create(&t, nullptr, scribble, y);",
            "pthread_t t; pthread_create(&t, nullptr, scribble, x); pthread_detach(t);",
            "pthread_t t; pthread_create(&t, nullptr, loop, nullptr); pthread_join(t, nullptr);",
            "pthread_t t; pthread_create(&t, nullptr, crash, nullptr); pthread_join(t, nullptr);",
            "pthread_cancel(pthread_self()); FOREVER pause();",
        )
    ),
    "jumps_and_exceptions": Family(
        any_of(
            "leave_mark(); longjmp(saved, 1);",
            "if (!setjmp(saved) || threadIdx.x % 2) { __syncthreads(); longjmp(saved, {count}); }",
            "jmp_buf b; memset(&b, {byte}, sizeof b); longjmp(b, 1);",
            "uint64_t r = {bits}; jmp_buf b; for (int k = 0; k < (int)sizeof b; ++k) ((char *)&b)[k] = draw(&r);"
            " longjmp(b, 1);",
            "if (!setjmp(saved)) FOREVER longjmp(saved, 0); else FOREVER longjmp(saved, 1);",
            "__builtin_unwind_init(); __builtin_eh_return({size}, (void *){bits});",
        ),
        fails=False,
    ),
    "mappings": Family(
        any_of(
            "munmap((void *)((uint64_t)x & ~4095ull), 4096 * {pages});",
            "mprotect((void *)((uint64_t)y & ~4095ull), 4096 * {pages}, PROT_NONE);",
            "mprotect((void *)((uint64_t)x & ~4095ull), 4096, PROT_READ); x[0] = 1;",
            "munmap((void *)((uint64_t)s & ~4095ull), 4096 * {pages});",
            "munmap((void *)((uint64_t)&s & ~4095ull), 4096 * {pages});",
            "mprotect((void *)((uint64_t)&loop & ~4095ull), 4096, PROT_NONE);",
            "munmap((void *)((uint64_t)&tk_launch_kernel & ~4095ull), 4096 * {pages});",
            "mmap((void *)((uint64_t)y & ~4095ull), 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);",
            "mprotect((void *)(((uint64_t)y & ~4095ull) - 4096), 8192, 3); y[-1000] = 1;",
            "madvise((void *)((uint64_t)&s & ~65535ull), 65536, MADV_DONTNEED);",
            "mremap((void *)((uint64_t)x & ~4095ull), 4096, 8192, MREMAP_MAYMOVE); x[0] = 1;",
        ),
        fails=False,
    ),
    "handlers_and_timers": Family(
        any_of(
            "signal({signal}, SIG_IGN);",
            "signal({signal}, stay);",
            "signal(SIGSEGV, SIG_DFL); signal(SIGUSR2, SIG_DFL);",
            "signal(SIGSEGV, stay); x[1 << 20] = 1;",
            "signal(SIGSEGV, SIG_IGN); x[1 << 20] = 1;",
            "signal(SIGSEGV, (void (*)(int)){bits}); x[1 << 20] = 1;",
            "stack_t none = {}; none.ss_flags = SS_DISABLE; sigaltstack(&none, nullptr); sink = descend(1);",
            "itimerval t = {{0, 1000 * {count}}, {0, 1000 * {count}}}; setitimer(ITIMER_REAL, &t, nullptr);",
            "itimerval t = {{0, 1000}, {0, 1000}}; signal(SIGALRM, swallow); setitimer(ITIMER_REAL, &t, nullptr);",
            "itimerval t = {{0, 1000}, {0, 1000}}; setitimer(ITIMER_PROF, &t, nullptr); sink = {byte};",
            "alarm(1);",
            "alarm(1); FOREVER {}",
            "sigset_t all; sigfillset(&all); pthread_sigmask(SIG_BLOCK, &all, nullptr); *(volatile int *)8 = 1;",
        ),
        fails=False,
    ),
    "state_of_the_process": Family(
        any_of(
            'chdir("/");',
            'chdir("/proc"); clearenv();',
            "umask(0777); errno = {byte};",
            "for (int k = 0; k < 16; ++k) { rlimit none = {0, 0}; setrlimit((__rlimit_resource)k, &none); }",
            "rlimit none = {0, 0}; setrlimit(RLIMIT_NOFILE, &none); setrlimit(RLIMIT_AS, &none);",
            "rlimit second = {1, 1}; setrlimit(RLIMIT_CPU, &second); FOREVER {}",
            'setenv("LD_PRELOAD", "/nowhere.so", 1); setenv("TMPDIR", "/nowhere", 1);',
            'nice(19); prctl(PR_SET_NAME, "other"); sched_param p = {}; sched_setscheduler(0, SCHED_IDLE, &p);',
            "setsid(); setpgid(0, 0);",
            'asm volatile("ldmxcsr %0" : : "m"(*(const uint32_t *)"\\x80\\x7f\\x00\\x00"));',
            'asm volatile("std");',
        ),
        fails=False,
    ),
    "guards": Family(
        any_of(
            "x[-{size} - 5] = 1;",
            "y[n + {size} + 5] = 1;",
            "y[(1 << 22) + {size}] = 1;",
            "x[-(1 << 22) + {size}] = 1;",
            "s[64 + {size}] = 1;",
            "s[-2048 - {size}] = 1;",
            "for (int k = 0;; ++k) y[k] = 0;",
            "for (int k = 0;; --k) x[k] = 0;",
            "for (int k = 0;; ++k) s[k] = 0;",
            "for (char *p = (char *)&s;; --p) *p = 0;",
            "memset(x, {byte}, {huge});",
            "memmove(y, x, {huge});",
        )
    ),
    "runtime": Family(
        any_of(
            "tk_current = (tk_thread *){address}; sink = threadIdx.x;",
            "memset((void *)tk_current, {byte}, {size} % 4096);",
            "tk_current->shared = (uint8_t *){address}; s = tk::shared_ptr<float>(0); s[0] = 1;",
            "tk_rt_barrier({byte} - 128, {size}, 0);",
            "tk_rt_ldmatrix((void *){bits}, (void *){address}, {count}, 0, 0);",
            "tk_rt_mma((const tk_mma_tile *){address}, x, x, x, x, 0);",
            "tk_rt_cp_async((void *){address}, (void *){bits}, {size}, 1, 0); tk_rt_cp_async_wait_all();",
            "tk_rt_shuffle({byte}, {byte}, 0, {byte}, {byte}, 0);",
            "tk_rt_load_global((void *){bits}, x, {size}, 0);",
            "tk_launch l; memset((void *)&l, {byte}, sizeof l); tk_result r; tk_launch_kernel(&l, &r);",
            'tk_rt_printf(0, "%s%n%s", (char *){address}, (char *){bits}, (char *){bits});',
            "tk_rt_fail({byte}, (const char *){bits});",
        ),
        fails=False,
    ),
}


def kernel_name(family: str, seed: int) -> str:
    return f"{family}_{seed}"


def kernel(family: str, seed: int) -> str:
    """The correct kernel with a hostile statement for some threads, somewhere."""
    rng = random.Random(f"{family} {seed}")
    who = rng.choice(WHO[:1] if FAMILIES[family].alone else WHO).replace("{lane}", str(rng.randrange(32)))
    place = rng.choice(PLACES)
    text = KERNEL.replace("@name", kernel_name(family, seed))
    deed = f"  if ({who}) {{ float v_ = 0.0f; {FAMILIES[family].deed(rng)} (void)v_; }}"
    for at in PLACES:
        text = text.replace(at + "\n", deed + "\n" if at == place else "")
    return text


def source(family: str) -> str:
    """All kernels of a family in one file."""
    return PROLOGUE + "".join(kernel(family, seed) for seed in SEEDS)
