// Runs a thread of another process instruction by instruction, until a socket of this process has something to read, and
// notes the addresses of the instructions (steps.py).
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

static int can_be_read(int socket) {
  int bytes = 0;
  return ioctl(socket, FIONREAD, &bytes) == 0 && bytes > 0;
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec + now.tv_nsec / 1e9;
}

// Waits until the thread has stopped: 1. 0 where the socket can be read for a second and the thread has not: another one
// has written. A negative error.
static int wait_for_stop(pid_t thread, int socket, double end) {
  double since = 0;
  for (long look = 1;; look++) {
    int status = 0;
    pid_t found = waitpid(thread, &status, __WALL | WNOHANG);
    if (found == thread) return WIFSTOPPED(status) ? 1 : -ESRCH;
    if (found < 0) return -errno;
    sched_yield();
    // Within a system call that waits the thread takes no step.
    if (look % 256 != 0) continue;
    double now = seconds();
    if (now > end) return -ETIME;
    if (socket < 0 || !can_be_read(socket)) continue;
    if (since == 0) since = now;
    if (now > since + 1) return 0;
  }
}

int steps_begin(pid_t thread) { return ptrace(PTRACE_SEIZE, thread, 0, 0) ? -errno : 0; }

int steps_stop(pid_t thread) {
  if (ptrace(PTRACE_INTERRUPT, thread, 0, 0)) return -errno;
  int stopped = wait_for_stop(thread, -1, seconds() + 10);
  return stopped < 0 ? stopped : 0;
}

// The thread has been stopped. It goes on afterwards. The number of instructions, or a negative error.
long steps_run(pid_t thread, int socket, double patience, unsigned long *addresses, long most) {
  double end = seconds() + patience;
  for (long count = 0; count < most; count++) {
    addresses[count] = ptrace(PTRACE_PEEKUSER, thread, offsetof(struct user_regs_struct, rip), 0);
    if (ptrace(PTRACE_SINGLESTEP, thread, 0, 0)) return -errno;
    int stopped = wait_for_stop(thread, socket, end);
    if (stopped < 0) return stopped;
    if (stopped == 0) return count + 1;
    if (can_be_read(socket)) return ptrace(PTRACE_CONT, thread, 0, 0) ? -errno : count + 1;
  }
  return -E2BIG;
}

int steps_end(pid_t thread) {
  int stopped = steps_stop(thread);
  if (stopped < 0) return stopped;
  return ptrace(PTRACE_DETACH, thread, 0, 0) ? -errno : 0;
}
