#pragma once
#include "shim.h"
#include <sys/syscall.h>

/* A filter of system calls (seccomp(2)), as a program of the kernel's classic BPF over `struct seccomp_data`: the number
   of the call at 0, the architecture at 4, the arguments from 16 on, eight bytes each. What is not on the list fails with
   EPERM: nothing is opened, connected, executed, signalled or traced any more. Types and numbers are the kernel's
   (linux/seccomp.h, linux/filter.h, linux/audit.h, linux/sched.h), declared here for the reason that shim.h gives. */

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

/* What decoding and encoding on threads needs, with any arguments: memory, clocks, and the socket that is open. */
static const unsigned int weir_allowed_calls[] = {
    SYS_recvfrom, SYS_sendto, SYS_read, SYS_write, SYS_close, SYS_futex, SYS_mmap, SYS_munmap, SYS_mprotect, SYS_mremap,
    SYS_madvise, SYS_brk, SYS_set_robust_list, SYS_rseq, SYS_exit, SYS_exit_group, SYS_gettid,
    SYS_getpid, SYS_getrandom, SYS_sched_yield, SYS_sched_getaffinity, SYS_sched_getparam, SYS_sched_getscheduler,
    SYS_clock_gettime, SYS_clock_getres, SYS_clock_nanosleep, SYS_nanosleep, SYS_gettimeofday, SYS_rt_sigaction,
    SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_sigaltstack, SYS_restart_syscall, SYS_get_mempolicy,
};

/* What libsrt needs besides, with a UDP socket that is open: datagrams, and the socket's own properties. It opens none. */
static const unsigned int weir_datagram_calls[] = {
    SYS_sendmsg, SYS_recvmsg, SYS_setsockopt, SYS_getsockopt, SYS_getsockname, SYS_pselect6, SYS_ppoll, SYS_epoll_create1,
#ifdef SYS_select
    SYS_select, SYS_poll, SYS_epoll_create,
#endif
};

/* Of the calling thread and all that it starts; 0 where the kernel took it. It needs no_new_privs. `more` are further
   calls. */
static inline int weir_allow_computing_and(const unsigned int *more, unsigned short more_count) {
#ifndef WEIR_ARCHITECTURE
  (void)more, (void)more_count;
  return -1;
#else
  enum { load = 0x20, equal = 0x15, at_least = 0x35, any_of = 0x45, answer = 0x06 };
  /* Where the call's number and the lower halves of its first and its third argument are; above them, the upper ones. */
  enum { number = 0, architecture = 4, first = 16, third = 32 };
  enum { name_thread = 15, no_call = 38 };
  const unsigned int allow = 0x7fff0000u, refuse = 0x00050000u | 1u, unknown = 0x00050000u | no_call, end = 0x80000000u;
  /* CLONE_THREAD: it ends with its process. CLONE_NEW…: it would have a file system, a network … of its own. */
  const unsigned int thread = 0x00010000u, namespaces = 0x7e020000u;
  enum { count = sizeof weir_allowed_calls / sizeof weir_allowed_calls[0] };
  struct weir_filter_step steps[2 * (count + 16) + 32];
  if (more_count > 16) return -1;
  unsigned short n = 0;
  steps[n++] = (struct weir_filter_step){load, 0, 0, architecture};
  steps[n++] = (struct weir_filter_step){equal, 1, 0, WEIR_ARCHITECTURE};
  steps[n++] = (struct weir_filter_step){answer, 0, 0, end};
  steps[n++] = (struct weir_filter_step){load, 0, 0, number};
  /* Calls of the x32 interface have other numbers. */
  steps[n++] = (struct weir_filter_step){at_least, 0, 1, 0x40000000u};
  steps[n++] = (struct weir_filter_step){answer, 0, 0, refuse};
  for (unsigned short at = 0; at < count + more_count; at += 1) {
    const unsigned int call = at < count ? weir_allowed_calls[at] : more[at - count];
    steps[n++] = (struct weir_filter_step){equal, 0, 1, call};
    steps[n++] = (struct weir_filter_step){answer, 0, 0, allow};
  }
  /* Threads, but no processes. */
  steps[n++] = (struct weir_filter_step){equal, 0, 5, SYS_clone};
  steps[n++] = (struct weir_filter_step){load, 0, 0, first};
  steps[n++] = (struct weir_filter_step){any_of, 0, 2, thread};
  steps[n++] = (struct weir_filter_step){any_of, 1, 0, namespaces};
  steps[n++] = (struct weir_filter_step){answer, 0, 0, allow};
  steps[n++] = (struct weir_filter_step){answer, 0, 0, refuse};
  /* Its flags are in memory, which a filter cannot read: the C library takes clone where this one is not there. */
  steps[n++] = (struct weir_filter_step){equal, 0, 1, SYS_clone3};
  steps[n++] = (struct weir_filter_step){answer, 0, 0, unknown};
  /* The process's own limits, to read: of no other process (a pid has 32 bits), and with no new ones (a pointer has 64). */
  steps[n++] = (struct weir_filter_step){equal, 0, 8, SYS_prlimit64};
  steps[n++] = (struct weir_filter_step){load, 0, 0, first};
  steps[n++] = (struct weir_filter_step){equal, 0, 5, 0};
  steps[n++] = (struct weir_filter_step){load, 0, 0, third};
  steps[n++] = (struct weir_filter_step){equal, 0, 3, 0};
  steps[n++] = (struct weir_filter_step){load, 0, 0, third + 4};
  steps[n++] = (struct weir_filter_step){equal, 0, 1, 0};
  steps[n++] = (struct weir_filter_step){answer, 0, 0, allow};
  steps[n++] = (struct weir_filter_step){answer, 0, 0, refuse};
  steps[n++] = (struct weir_filter_step){equal, 0, 3, SYS_prctl};
  steps[n++] = (struct weir_filter_step){load, 0, 0, first};
  steps[n++] = (struct weir_filter_step){equal, 0, 1, name_thread};
  steps[n++] = (struct weir_filter_step){answer, 0, 0, allow};
  steps[n++] = (struct weir_filter_step){answer, 0, 0, refuse};
  struct weir_filter filter = {n, steps};
  return prctl(22, 2UL, &filter);
#endif
}

static inline int weir_allow_computing_only(void) { return weir_allow_computing_and((const unsigned int *)0, 0); }

static inline int weir_allow_datagrams_too(void) {
  return weir_allow_computing_and(weir_datagram_calls, sizeof weir_datagram_calls / sizeof weir_datagram_calls[0]);
}
