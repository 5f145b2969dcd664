/* The least that an ingest server can do: canned replies of RTMP, one thread with epoll, and what is received written to memory
 * files of two seconds each, of which eight are kept. It reads no message and makes no playlist.
 *
 *   floor PORT
 *
 * Takes what publishers send, byte for byte. Prints "ready" when it listens, and ends with the signal TERM. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { FILES = 8, HANDSHAKE = 1 + 1536 + 1536, MOST = 1 << 16 };

struct publisher {
  int fd, file[FILES], current;
  size_t received;
  /* The commands that have been answered: connect, createStream, publish. */
  int answered;
  time_t began;
  /* C1, and later the end of the last piece, within which a command's name may be cut. */
  char kept[1536];
  size_t keeps;
};

/* A message of AMF0 in one chunk: the name of an answer, the number of its command, and what follows. */
static void answer(int fd, const char *name, double number, const void *rest, size_t count, int stream) {
  uint8_t out[512] = {3, 0, 0, 0, 0, 0, 0, 20, (uint8_t)stream};
  size_t at = 12, length = strlen(name);
  uint64_t bits;
  memcpy(&bits, &number, 8);
  out[at++] = 2, out[at++] = length >> 8, out[at++] = length;
  memcpy(out + at, name, length), at += length;
  out[at++] = 0;
  for (int i = 7; i >= 0; i--) out[at++] = bits >> 8 * i;
  memcpy(out + at, rest, count), at += count;
  size_t body = at - 12;
  out[4] = body >> 16, out[5] = body >> 8, out[6] = body;
  /* Chunks of 128 bytes, which is what a client expects at first. */
  uint8_t cut[600];
  size_t size = 12;
  memcpy(cut, out, 12);
  for (size_t i = 0; i < body; i++) {
    if (i && i % 128 == 0) cut[size++] = 0xC3;
    cut[size++] = out[12 + i];
  }
  if (send(fd, cut, size, MSG_NOSIGNAL) < 0) perror("send");
}

static const uint8_t null_and_one[] = {5, 0, 0x3F, 0xF0, 0, 0, 0, 0, 0, 0};
static const uint8_t started[] = "\5\3\0\5level\2\0\6status\0\4code\2\0\27NetStream.Publish.Start\0\0\11";

/* Answers the commands that the bytes contain. A client sends one only after the answer to the one before. */
static void converse(struct publisher *p, const char *bytes, size_t count) {
  static const char *const commands[] = {"connect", "createStream", "publish"};
  char text[sizeof p->kept + MOST];
  memcpy(text, p->kept, p->keeps);
  memcpy(text + p->keeps, bytes, count);
  count += p->keeps;
  while (p->answered < 3) {
    const char *name = commands[p->answered];
    char *found = memmem(text, count, name, strlen(name));
    if (!found || found + strlen(name) + 9 > text + count) break;
    uint64_t bits = 0;
    for (int i = 0; i < 8; i++) bits = bits << 8 | (uint8_t)found[strlen(name) + 1 + i];
    double number;
    memcpy(&number, &bits, 8);
    if (p->answered < 2) answer(p->fd, "_result", number, null_and_one, sizeof null_and_one, 0);
    else answer(p->fd, "onStatus", 0, started, sizeof started - 1, 1);
    p->answered++;
    size_t used = found + strlen(name) + 9 - text;
    memmove(text, text + used, count -= used);
  }
  p->keeps = count < 64 ? count : 64;
  memcpy(p->kept, text + count - p->keeps, p->keeps);
}

static void store(struct publisher *p, const char *bytes, size_t count) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  if (!p->began || now.tv_sec - p->began >= 2) {
    p->began = now.tv_sec;
    p->current = (p->current + 1) % FILES;
    if (p->file[p->current]) close(p->file[p->current]);
    p->file[p->current] = memfd_create("floor", MFD_CLOEXEC);
  }
  if (write(p->file[p->current], bytes, count) < 0) perror("write");
}

static void end(struct publisher *p) {
  for (int i = 0; i < FILES; i++)
    if (p->file[i]) close(p->file[i]);
  close(p->fd);
  free(p);
}

static void readable(struct publisher *p) {
  static char bytes[MOST];
  ssize_t count = read(p->fd, bytes, sizeof bytes);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) return end(p);
  char *from = bytes;
  if (p->received < 1 + 1536) {
    /* S0, S1 and S2, which repeats C1. */
    for (; count > 0 && p->received < 1 + 1536; p->received++, from++, count--)
      if (p->received > 0) p->kept[p->received - 1] = *from;
    if (p->received == 1 + 1536) {
      static char s0s1[1 + 1536] = {3};
      if (send(p->fd, s0s1, sizeof s0s1, MSG_NOSIGNAL) < 0 || send(p->fd, p->kept, 1536, MSG_NOSIGNAL) < 0) perror("send");
    }
  }
  for (; count > 0 && p->received < HANDSHAKE; p->received++) from++, count--;
  if (count <= 0) return;
  if (p->answered == 3) store(p, from, count);
  else converse(p, from, count);
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  int poll = epoll_create1(0), server = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1;
  setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1])), .sin_addr = {htonl(INADDR_LOOPBACK)}};
  if (bind(server, (struct sockaddr *)&address, sizeof address) || listen(server, 1024)) return perror("listen"), 1;
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
  epoll_ctl(poll, EPOLL_CTL_ADD, server, &event);
  puts("ready");
  fflush(stdout);
  for (;;) {
    struct epoll_event events[64];
    int ready = epoll_wait(poll, events, 64, -1);
    for (int i = 0; i < ready; i++) {
      if (events[i].data.ptr) {
        readable(events[i].data.ptr);
        continue;
      }
      int fd = accept4(server, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (fd < 0) continue;
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
      struct publisher *p = calloc(1, sizeof *p);
      p->fd = fd;
      event.data.ptr = p;
      epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event);
    }
  }
}
