#pragma once
#include <sys/syscall.h>

/* What <unistd.h> and <errno.h> declare; they belong to Glibc's module. */
extern long syscall(long number, ...);
extern int *__errno_location(void);

enum { weir_eperm = 1, weir_enosys = 38, weir_sigchld = 17, weir_limit_of_files = 7 };

/* struct clone_args of linux/sched.h, as it was at first. */
struct weir_clone_arguments {
  unsigned long long flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
};

/* What a system call answers, -errno where it failed. */
static inline long weir_try(long number, long a, long b, long c, long d) {
  long result = syscall(number, a, b, c, d, 0L);
  return result < 0 ? -*__errno_location() : result;
}

/* The same of a call that makes a process, which ends at once. */
static inline long weir_try_to_fork(void) {
  long result = syscall(SYS_clone, (long)weir_sigchld, 0L, 0L, 0L, 0L);
  if (result == 0) syscall(SYS_exit_group, 0L);
  return result < 0 ? -*__errno_location() : result;
}

static inline long weir_try_to_fork_anew(void) {
  struct weir_clone_arguments arguments = {0, 0, 0, 0, weir_sigchld, 0, 0, 0};
  long result = syscall(SYS_clone3, &arguments, sizeof arguments);
  if (result == 0) syscall(SYS_exit_group, 0L);
  return result < 0 ? -*__errno_location() : result;
}

/* A new network for a thread: no valid call, so it makes no thread where it is let through. */
static inline long weir_try_a_namespace(void) { return weir_try(SYS_clone, 0x40010000L, 0L, 0L, 0L); }

/* The process's own limit of open files: read; or set to what it is. */
static inline long weir_try_limits(long process, int is_set) {
  unsigned long long limits[2] = {0, 0};
  long result = weir_try(SYS_prlimit64, 0L, weir_limit_of_files, 0L, (long)limits);
  if (result < 0) return result;
  return weir_try(SYS_prlimit64, process, weir_limit_of_files, is_set ? (long)limits : 0L, 0L);
}
