#pragma once

/* prctl takes a variable number of arguments, which Swift cannot call. <sys/prctl.h> and <signal.h> are left out: what
   they declare beside it would belong to this module as well as to Glibc. The numbers are the kernel's (linux/prctl.h). */
extern int prctl(int option, ...);

enum { weir_pr_set_pdeathsig = 1, weir_pr_set_dumpable = 4, weir_pr_set_no_new_privs = 38, weir_sigkill = 9 };

static inline int weir_die_with_parent(void) { return prctl(weir_pr_set_pdeathsig, (unsigned long)weir_sigkill); }
static inline int weir_gain_nothing(void) { return prctl(weir_pr_set_no_new_privs, 1UL, 0UL, 0UL, 0UL); }
static inline int weir_be_private(void) { return prctl(weir_pr_set_dumpable, 0UL, 0UL, 0UL, 0UL); }

/* <malloc.h> would belong to this module as well as to Glibc. The numbers are the C library's. */
extern int mallopt(int parameter, int value);

enum { weir_m_trim_threshold = -1, weir_m_mmap_threshold = -3, weir_m_arena_max = -8 };

/* The threads of a process share two heaps: each further one would reserve 64 MiB of addresses. */
static inline void weir_share_heaps(void) { (void)mallopt(weir_m_arena_max, 2); }

/* Gives what is free to the system. */
extern int malloc_trim(unsigned long pad);
static inline void weir_trim_heap(void) { (void)malloc_trim(0); }

/* What is freed stays with the process, up to 128 MiB, and is taken again without being cleared. */
static inline void weir_keep_freed_memory(void) {
  (void)mallopt(weir_m_mmap_threshold, 32 << 20);
  (void)mallopt(weir_m_trim_threshold, 128 << 20);
}
