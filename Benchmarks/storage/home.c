// Compares places to store the bytes of a live segment. It measures the cost of writing a segment there as it is
// published, and the cost of sending it to a viewer.
//
//   memfd, heads inside    the interleaved segment as it is served: one range
//   memfd, heads outside   media only; each fragment is a head from memory and a range
//   heap                   one buffer a fragment; the segment is sent by writev
//   file                   a file on this disk, heads inside: one range
//
// Build and run: make -C Benchmarks/storage
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { fragments = 10, head = 300, media = 104500, fragment = head + media, segment = fragments * fragment };
enum { rounds = 7, sends = 200, stores = 100 };
enum home { inside, outside, heap, file, homes };
static const char *names[homes] = {"memfd, heads inside", "memfd, heads outside", "heap", "file"};

static char *source;

static double cpu(void) {
  struct rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
         (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void must(int ok, const char *what) {
  if (!ok) {
    perror(what);
    exit(1);
  }
}

static void *drain(void *argument) {
  int socket = *(int *)argument;
  char *buffer = malloc(1 << 18);
  while (read(socket, buffer, 1 << 18) > 0) {
  }
  free(buffer);
  return NULL;
}

struct place {
  int descriptor;
  char *buffers[fragments];
};

static struct place put(enum home home) {
  struct place place = {.descriptor = -1};
  if (home == inside || home == outside) place.descriptor = memfd_create("segment", 0);
  if (home == file) {
    char name[] = "./segment-XXXXXX";
    place.descriptor = mkstemp(name);
    unlink(name);
  }
  for (int i = 0; i < fragments; i++) {
    char *from = source + (size_t)i * fragment;
    if (home == heap) {
      place.buffers[i] = malloc(fragment);
      memcpy(place.buffers[i], from, fragment);
    } else if (home == outside) {
      must(pwrite(place.descriptor, from + head, media, (off_t)i * media) == media, "pwrite");
    } else {
      must(pwrite(place.descriptor, from, fragment, (off_t)i * fragment) == fragment, "pwrite");
    }
  }
  return place;
}

static void forget(struct place *place) {
  if (place->descriptor >= 0) close(place->descriptor);
  for (int i = 0; i < fragments; i++) free(place->buffers[i]);
}

static void send_all(int socket, const void *bytes, size_t length, int flags) {
  for (size_t sent = 0; sent < length;) {
    ssize_t count = send(socket, (const char *)bytes + sent, length - sent, flags);
    must(count > 0, "send");
    sent += (size_t)count;
  }
}

static void send_range(int socket, int descriptor, off_t offset, size_t length) {
  while (length > 0) {
    ssize_t count = sendfile(socket, descriptor, &offset, length);
    must(count > 0, "sendfile");
    length -= (size_t)count;
  }
}

static void deliver(enum home home, struct place *place, int socket) {
  static const char response[200] = "HTTP/1.1 200 OK";
  send_all(socket, response, sizeof response, MSG_MORE);
  if (home == inside || home == file) {
    send_range(socket, place->descriptor, 0, segment);
  } else if (home == outside) {
    for (int i = 0; i < fragments; i++) {
      send_all(socket, source + (size_t)i * fragment, head, MSG_MORE);
      send_range(socket, place->descriptor, (off_t)i * media, media);
    }
  } else {
    struct iovec vectors[fragments];
    for (int i = 0; i < fragments; i++) vectors[i] = (struct iovec){place->buffers[i], fragment};
    int first = 0;
    while (first < fragments) {
      ssize_t count = writev(socket, vectors + first, fragments - first);
      must(count > 0, "writev");
      while (first < fragments && (size_t)count >= vectors[first].iov_len) count -= (ssize_t)vectors[first++].iov_len;
      if (first < fragments) {
        vectors[first].iov_base = (char *)vectors[first].iov_base + count;
        vectors[first].iov_len -= (size_t)count;
      }
    }
  }
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(void) {
  source = malloc(segment);
  for (size_t i = 0; i < segment; i++) source[i] = (char)(i * 2654435761u >> 13);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  must(bind(listener, (struct sockaddr *)&address, size) == 0, "bind");
  listen(listener, 1);
  getsockname(listener, (struct sockaddr *)&address, &size);
  int client = socket(AF_INET, SOCK_STREAM, 0);
  must(connect(client, (struct sockaddr *)&address, size) == 0, "connect");
  int server = accept(listener, NULL, NULL);
  pthread_t reader;
  pthread_create(&reader, NULL, drain, &client);

  double putting[homes][rounds], sending[homes][rounds];
  for (int round = 0; round < rounds; round++) {
    for (int home = 0; home < homes; home++) {
      double start = cpu();
      for (int i = 0; i < stores; i++) {
        struct place place = put(home);
        forget(&place);
      }
      putting[home][round] = (cpu() - start) / stores;
      struct place place = put(home);
      start = cpu();
      for (int i = 0; i < sends; i++) deliver(home, &place, server);
      sending[home][round] = (cpu() - start) / sends;
      forget(&place);
    }
  }
  shutdown(server, SHUT_WR);
  pthread_join(reader, NULL);

  printf("| home of a 1 MiB segment of 10 fragments | put, µs CPU | send, µs CPU | send, ratio |\n|---|---|---|---|\n");
  for (int home = 0; home < homes; home++) {
    qsort(putting[home], rounds, sizeof(double), ascending);
    qsort(sending[home], rounds, sizeof(double), ascending);
  }
  for (int home = 0; home < homes; home++)
    printf("| %s | %.0f | %.0f | %.2f |\n", names[home], putting[home][rounds / 2], sending[home][rounds / 2],
           sending[home][rounds / 2] / sending[inside][rounds / 2]);
  return 0;
}
