/* Paces pre-built RTMP messages into many connections that are already publishing.
 *
 *   replay FILE SECONDS FD...
 *
 * FILE: records of due time (ms, uint32), length (uint32) and bytes, little endian, in order of time. Connection i
 * begins i/N of two seconds later, so that key frames do not fall together. What servers say is read and dropped.
 * Prints one line of JSON: messages, bytes, worst lag in ms. Ends with 1 when a connection breaks. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <fcntl.h>
#include <time.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}

struct publisher {
  int fd;
  size_t at;
  double start;
};

int main(int argc, char **argv) {
  if (argc < 4) return 2;
  int file = open(argv[1], O_RDONLY);
  struct stat status;
  if (file < 0 || fstat(file, &status)) return 2;
  const uint8_t *data = mmap(0, status.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
  if (data == MAP_FAILED) return 2;
  int count = argc - 3;
  struct publisher *all = calloc(count, sizeof *all);
  double begin = now(), end = begin + atof(argv[2]), worst = 0;
  for (int i = 0; i < count; i++) all[i] = (struct publisher){atoi(argv[3 + i]), 0, begin + 2.0 * i / count};
  uint64_t messages = 0, bytes = 0;
  static char junk[65536];
  for (;;) {
    struct publisher *next = 0;
    double due = 0;
    for (int i = 0; i < count; i++) {
      if (all[i].at + 8 > (size_t)status.st_size) continue;
      uint32_t ms;
      memcpy(&ms, data + all[i].at, 4);
      double when = all[i].start + ms / 1000.0;
      if (!next || when < due) next = &all[i], due = when;
    }
    if (!next || due > end) break;
    double wait = due - now();
    if (wait > 0) {
      struct timespec t = {(time_t)wait, (long)((wait - (time_t)wait) * 1e9)};
      nanosleep(&t, 0);
    } else if (-wait > worst) {
      worst = -wait;
    }
    uint32_t length;
    memcpy(&length, data + next->at + 4, 4);
    const uint8_t *from = data + next->at + 8;
    for (uint32_t sent = 0; sent < length;) {
      ssize_t n = send(next->fd, from + sent, length - sent, MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) {
        fprintf(stderr, "connection %ld broke: %s\n", (long)(next - all), strerror(errno));
        return 1;
      }
      sent += n;
    }
    next->at += 8 + length;
    messages++;
    bytes += length;
    if (messages % 256 == 0)
      for (int i = 0; i < count; i++)
        while (recv(all[i].fd, junk, sizeof junk, MSG_DONTWAIT) > 0) continue;
  }
  printf("{\"messages\":%lu,\"bytes\":%lu,\"worst_lag_ms\":%.1f,\"seconds\":%.3f}\n", (unsigned long)messages,
         (unsigned long)bytes, worst * 1000, now() - begin);
  return 0;
}
