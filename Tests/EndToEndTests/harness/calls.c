// Makes the n-th call of a kind fail, once, in the program that loads this by LD_PRELOAD and in its children. The
// call is selected in shared memory, in the file named by TEST_CALLS.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

// In the order of calls.py.
enum kind { NONE, OPEN, CREATE, MEMORY_FILE, ACCEPT, SOCKET, EVENT, PIPE, DUPLICATE, MAP, READ, WRITE, GROW, SYNC, NAME };

struct control {
  _Atomic int kind;
  _Atomic int error;
  // Number of calls of the kind up to the one that fails.
  _Atomic int left;
  _Atomic int hits;
};

static struct control *control;

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("TEST_CALLS");
  int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
  if (file < 0) return;
  void *memory = mmap(0, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory != MAP_FAILED) control = memory;
  close(file);
}

static int fails(enum kind kind) {
  if (!control || atomic_load(&control->kind) != (int)kind || atomic_fetch_sub(&control->left, 1) != 1) return 0;
  errno = control->error;
  atomic_fetch_add(&control->hits, 1);
  return 1;
}

static int fails_on_file(enum kind kind, int file) {
  struct stat status;
  int before = errno;
  if (!control || atomic_load(&control->kind) != (int)kind) return 0;
  int is_file = fstat(file, &status) == 0 && S_ISREG(status.st_mode);
  errno = before;
  return is_file && fails(kind);
}

// libdispatch counts its threads by a file of /proc, and traps if it cannot open it. Callers cannot avoid that.
static int is_opened(const char *path, int flags) {
  if (strncmp(path, "/proc/self/task/", 16) == 0) return 1;
  return !fails(OPEN) && !((flags & O_CREAT) && fails(CREATE));
}

#define REAL(name) \
  static __typeof__(name) *real; \
  if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

#define OPENING(name) \
  int name(const char *path, int flags, ...) { \
    REAL(name); \
    va_list rest; \
    va_start(rest, flags); \
    mode_t mode = va_arg(rest, mode_t); \
    va_end(rest); \
    return is_opened(path, flags) ? real(path, flags, mode) : -1; \
  }
#define OPENING_AT(name) \
  int name(int folder, const char *path, int flags, ...) { \
    REAL(name); \
    va_list rest; \
    va_start(rest, flags); \
    mode_t mode = va_arg(rest, mode_t); \
    va_end(rest); \
    return is_opened(path, flags) ? real(folder, path, flags, mode) : -1; \
  }
OPENING(open)
OPENING(open64)
OPENING_AT(openat)
OPENING_AT(openat64)

#define FAILING(type, name, parameters, arguments, condition) \
  type name parameters { \
    REAL(name); \
    return (condition) ? (type)-1 : real arguments; \
  }
FAILING(int, memfd_create, (const char *name, unsigned flags), (name, flags), fails(MEMORY_FILE))
FAILING(int, accept, (int s, struct sockaddr *a, socklen_t *l), (s, a, l), fails(ACCEPT))
FAILING(int, accept4, (int s, struct sockaddr *a, socklen_t *l, int f), (s, a, l, f), fails(ACCEPT))
FAILING(int, socket, (int d, int t, int p), (d, t, p), fails(SOCKET))
FAILING(int, socketpair, (int d, int t, int p, int v[2]), (d, t, p, v), fails(SOCKET))
FAILING(int, eventfd, (unsigned c, int f), (c, f), fails(EVENT))
FAILING(int, timerfd_create, (clockid_t c, int f), (c, f), fails(EVENT))
FAILING(int, epoll_create1, (int f), (f), fails(EVENT))
FAILING(int, pipe, (int v[2]), (v), fails(PIPE))
FAILING(int, pipe2, (int v[2], int f), (v, f), fails(PIPE))
FAILING(int, dup, (int f), (f), fails(DUPLICATE))
FAILING(int, dup2, (int f, int t), (f, t), fails(DUPLICATE))
FAILING(int, dup3, (int f, int t, int g), (f, t, g), fails(DUPLICATE))
FAILING(void *, mmap, (void *a, size_t l, int p, int m, int f, off_t o), (a, l, p, m, f, o), fails(MAP))
FAILING(void *, mmap64, (void *a, size_t l, int p, int m, int f, off64_t o), (a, l, p, m, f, o), fails(MAP))
FAILING(ssize_t, read, (int f, void *b, size_t n), (f, b, n), fails_on_file(READ, f))
FAILING(ssize_t, pread, (int f, void *b, size_t n, off_t o), (f, b, n, o), fails_on_file(READ, f))
FAILING(ssize_t, pread64, (int f, void *b, size_t n, off64_t o), (f, b, n, o), fails_on_file(READ, f))
FAILING(ssize_t, sendfile, (int t, int f, off_t *o, size_t n), (t, f, o, n),
        fails_on_file(READ, f) || fails_on_file(WRITE, t))
FAILING(ssize_t, sendfile64, (int t, int f, off64_t *o, size_t n), (t, f, o, n),
        fails_on_file(READ, f) || fails_on_file(WRITE, t))
FAILING(ssize_t, write, (int f, const void *b, size_t n), (f, b, n), fails_on_file(WRITE, f))
FAILING(ssize_t, pwrite, (int f, const void *b, size_t n, off_t o), (f, b, n, o), fails_on_file(WRITE, f))
FAILING(ssize_t, pwrite64, (int f, const void *b, size_t n, off64_t o), (f, b, n, o), fails_on_file(WRITE, f))
FAILING(ssize_t, writev, (int f, const struct iovec *v, int n), (f, v, n), fails_on_file(WRITE, f))
FAILING(ssize_t, pwritev, (int f, const struct iovec *v, int n, off_t o), (f, v, n, o), fails_on_file(WRITE, f))
FAILING(ssize_t, copy_file_range, (int f, off64_t *o, int t, off64_t *p, size_t n, unsigned g), (f, o, t, p, n, g),
        fails_on_file(WRITE, t))
FAILING(int, fallocate, (int f, int m, off_t o, off_t n), (f, m, o, n), fails_on_file(GROW, f))
FAILING(int, ftruncate, (int f, off_t n), (f, n), fails_on_file(GROW, f))
FAILING(int, ftruncate64, (int f, off64_t n), (f, n), fails_on_file(GROW, f))
FAILING(int, fsync, (int f), (f), fails(SYNC))
FAILING(int, fdatasync, (int f), (f), fails(SYNC))
FAILING(int, mkdir, (const char *p, mode_t m), (p, m), fails(NAME))
FAILING(int, mkdirat, (int f, const char *p, mode_t m), (f, p, m), fails(NAME))
FAILING(int, rename, (const char *p, const char *q), (p, q), fails(NAME))
FAILING(int, renameat, (int f, const char *p, int g, const char *q), (f, p, g, q), fails(NAME))
FAILING(int, renameat2, (int f, const char *p, int g, const char *q, unsigned h), (f, p, g, q, h), fails(NAME))
FAILING(int, unlink, (const char *p), (p), fails(NAME))
FAILING(int, unlinkat, (int f, const char *p, int g), (f, p, g), fails(NAME))
