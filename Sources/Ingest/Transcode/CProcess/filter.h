#pragma once
#include "shim.h"
#include <sys/syscall.h>

/* A filter of system calls (seccomp(2)), as a program of the kernel's classic BPF over `struct seccomp_data`: the number
   of the call at 0, the architecture at 4, the first argument at 16. What is not on the list fails with EPERM: nothing is
   opened, connected, executed, signalled or traced any more. Types and numbers are the kernel's (linux/seccomp.h,
   linux/filter.h, linux/audit.h), declared here for the reason that shim.h gives. */

struct weir_filter_step {
  unsigned short code;
  unsigned char yes, no;
  unsigned int value;
};

struct weir_filter {
  unsigned short length;
  struct weir_filter_step *steps;
};

#if defined(__x86_64__)
#define WEIR_ARCHITECTURE 0xC000003Eu
#elif defined(__aarch64__)
#define WEIR_ARCHITECTURE 0xC00000B7u
#endif

/* What decoding and encoding on threads needs: memory, threads, clocks, and the socket that is open. */
static const unsigned int weir_allowed_calls[] = {
    SYS_recvfrom, SYS_sendto, SYS_read, SYS_write, SYS_close, SYS_futex, SYS_mmap, SYS_munmap, SYS_mprotect, SYS_mremap,
    SYS_madvise, SYS_brk, SYS_clone, SYS_clone3, SYS_set_robust_list, SYS_rseq, SYS_exit, SYS_exit_group, SYS_gettid,
    SYS_getpid, SYS_getrandom, SYS_sched_yield, SYS_sched_getaffinity, SYS_sched_getparam, SYS_sched_getscheduler,
    SYS_clock_gettime, SYS_clock_getres, SYS_clock_nanosleep, SYS_nanosleep, SYS_gettimeofday, SYS_rt_sigaction,
    SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_sigaltstack, SYS_restart_syscall, SYS_get_mempolicy, SYS_prlimit64,
};

/* Of the calling thread and all that it starts; 0 where the kernel took it. It needs no_new_privs. */
static inline int weir_allow_computing_only(void) {
#ifndef WEIR_ARCHITECTURE
  return -1;
#else
  enum { load = 0x20, equal = 0x15, at_least = 0x35, answer = 0x06, name_thread = 15 };
  enum { count = sizeof weir_allowed_calls / sizeof weir_allowed_calls[0] };
  const unsigned int allow = 0x7fff0000u, refuse = 0x00050000u | 1u, end = 0x80000000u;
  struct weir_filter_step steps[count + 11];
  unsigned short n = 0;
  steps[n++] = (struct weir_filter_step){load, 0, 0, 4};
  steps[n++] = (struct weir_filter_step){equal, 1, 0, WEIR_ARCHITECTURE};
  steps[n++] = (struct weir_filter_step){answer, 0, 0, end};
  steps[n++] = (struct weir_filter_step){load, 0, 0, 0};
  /* Calls of the x32 interface have other numbers. */
  steps[n++] = (struct weir_filter_step){at_least, count + 3, 0, 0x40000000u};
  for (unsigned short at = 0; at < count; at += 1) {
    unsigned char to_allow = (unsigned char)(count - at - 1 + 4);
    steps[n++] = (struct weir_filter_step){equal, to_allow, 0, weir_allowed_calls[at]};
  }
  steps[n++] = (struct weir_filter_step){equal, 0, 2, SYS_prctl};
  steps[n++] = (struct weir_filter_step){load, 0, 0, 16};
  steps[n++] = (struct weir_filter_step){equal, 1, 0, name_thread};
  steps[n++] = (struct weir_filter_step){answer, 0, 0, refuse};
  steps[n++] = (struct weir_filter_step){answer, 0, 0, allow};
  struct weir_filter filter = {n, steps};
  return prctl(22, 2UL, &filter);
#endif
}
