/* A crowd of Low-Latency HLS players on one thread: each waits for the next part of the playlist, fetches that part if
 * told to, and waits again.
 *
 *   players HOST PORT PLAYLIST-PATH COUNT SECONDS parts|waits|idle
 *
 * `waits` leaves the parts out; `idle` asks once and keeps the connection. Prints one line of JSON: requests, bytes,
 * failures, and for each position that all have seen how far the last player was behind the first (ms, ascending).
 * Arrival is when the last byte of the playlist was read; `written` is the same by the times at which the kernel took
 * these bytes in, which over loopback is when the server wrote them: without the time that this one thread needs for
 * thousands of playlists. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { HEAD = 8192, BODY = 65536, POSITIONS = 1 << 16 };

struct player {
  int fd;
  int is_playlist;       /* kind of the response in progress */
  size_t have;           /* bytes of head, or of head and body of a playlist */
  long body;             /* remaining bytes of the body; -1 during the head */
  long segment, part;    /* the requested position */
  long next[2];          /* the one after it */
  char buffer[HEAD + BODY];
};

struct position {
  double first, last;
  double first_written, last_written;
  int count;
};

static struct position *positions;
static const char *path;
static char folder[512];
static const char *host;
static int fetches_parts;
static uint64_t requests, bytes, failures;
static long origin_segment = -1;
static double written; /* when the kernel received the last read bytes, wall clock */

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}

/* recv, with the arrival time of the last of these bytes (SO_TIMESTAMPNS). */
static ssize_t receive(int fd, char *room, size_t size, int flags) {
  char control[CMSG_SPACE(sizeof(struct timespec))];
  struct iovec vector = {room, size};
  struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  ssize_t count = recvmsg(fd, &message, flags);
  for (struct cmsghdr *c = count > 0 ? CMSG_FIRSTHDR(&message) : 0; c; c = CMSG_NXTHDR(&message, c))
    if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_TIMESTAMPNS) {
      struct timespec t;
      memcpy(&t, CMSG_DATA(c), sizeof t);
      written = t.tv_sec + t.tv_nsec / 1e9;
    }
  return count;
}

static void ask(struct player *p, int is_playlist) {
  char text[1024];
  int length;
  p->is_playlist = is_playlist;
  p->have = 0;
  p->body = -1;
  if (!is_playlist)
    length = snprintf(text, sizeof text, "GET %s/%ld.%ld.m4s HTTP/1.1\r\nHost: %s\r\n\r\n", folder, p->segment, p->part, host);
  else if (p->segment < 0)
    length = snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", path, host);
  else
    length = snprintf(text, sizeof text, "GET %s?_HLS_msn=%ld&_HLS_part=%ld HTTP/1.1\r\nHost: %s\r\n\r\n", path, p->segment,
                      p->part, host);
  if (send(p->fd, text, length, MSG_NOSIGNAL) != length) failures++;
  requests++;
}

static struct position *place(long segment, long part) {
  if (origin_segment < 0) origin_segment = segment;
  long index = (segment - origin_segment) * 64 + part;
  return index >= 0 && index < POSITIONS && part < 64 ? &positions[index] : 0;
}

static void next_position(struct player *p) {
  p->segment = p->next[0];
  p->part = p->next[1];
  ask(p, 1);
}

/* A playlist is complete: record its time, and continue with the awaited part or with the hinted one. */
static void take_playlist(struct player *p) {
  p->buffer[p->have] = 0;
  if (p->segment >= 0) {
    struct position *at = place(p->segment, p->part);
    if (at) {
      double time = now();
      if (!at->count++) at->first = time, at->first_written = at->last_written = written;
      at->last = time;
      if (written < at->first_written) at->first_written = written;
      if (written > at->last_written) at->last_written = written;
    }
  }
  char *hint = strstr(p->buffer, "#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"");
  if (!hint || sscanf(hint + 35, "%ld.%ld.m4s", &p->next[0], &p->next[1]) != 2) {
    failures++;
    return;
  }
  char name[64];
  snprintf(name, sizeof name, "\"%ld.%ld.m4s\"", p->segment, p->part);
  char *listed = strstr(p->buffer, name);
  if (fetches_parts && listed && listed < hint) {
    ask(p, 0);
    return;
  }
  next_position(p);
}

static void readable(struct player *p) {
  for (;;) {
    ssize_t count;
    if (p->body < 0 || p->is_playlist) {
      count = receive(p->fd, p->buffer + p->have, sizeof p->buffer - 1 - p->have, MSG_DONTWAIT);
    } else {
      static char sink[1 << 18];
      count = recv(p->fd, sink, p->body < (long)sizeof sink ? p->body : (long)sizeof sink, MSG_DONTWAIT | MSG_TRUNC);
    }
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count <= 0) {
      if (!failures++) fprintf(stderr, "connection lost: %s\n", count ? strerror(errno) : "closed");
      close(p->fd);
      p->fd = -1;
      return;
    }
    bytes += count;
    if (p->body < 0) {
      p->have += count;
      p->buffer[p->have] = 0;
      char *end = strstr(p->buffer, "\r\n\r\n");
      if (!end) continue;
      char *length = strcasestr(p->buffer, "content-length:");
      int status = atoi(p->buffer + 9);
      if (status != 200 || !length || length > end) {
        if (!failures++) fprintf(stderr, "asked for %ld.%ld: %.400s\n", p->segment, p->part, p->buffer);
        close(p->fd);
        p->fd = -1;
        return;
      }
      size_t head = end + 4 - p->buffer;
      p->body = atol(length + 15) - (long)(p->have - head);
    } else {
      if (p->is_playlist) p->have += count;
      p->body -= count;
    }
    if (p->body > 0) continue;
    /* No more bytes can arrive before the next response, so there is no second read: epoll reports it. */
    if (!p->is_playlist) next_position(p);
    else if (fetches_parts >= 0) take_playlist(p);
    else p->body = -1, p->have = 0;
    return;
  }
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static void print_list(const double *values, int count) {
  printf("[");
  for (int i = 0; i < count; i++) printf("%s%.2f", i ? ", " : "", values[i]);
  printf("]");
}

int main(int argc, char **argv) {
  if (argc != 7) return 2;
  host = argv[1];
  path = argv[3];
  int count = atoi(argv[4]);
  double seconds = atof(argv[5]);
  fetches_parts = !strcmp(argv[6], "parts") ? 1 : !strcmp(argv[6], "idle") ? -1 : 0;
  snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
  positions = calloc(POSITIONS, sizeof *positions);
  struct player *all = calloc(count, sizeof *all);
  int poll = epoll_create1(0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[2]))};
  if (!positions || !all || poll < 0 || inet_pton(AF_INET, host, &address.sin_addr) != 1) return 2;
  for (int i = 0; i < count; i++) {
    all[i].fd = socket(AF_INET, SOCK_STREAM, 0);
    int one = 1;
    setsockopt(all[i].fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(all[i].fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof one);
    if (connect(all[i].fd, (struct sockaddr *)&address, sizeof address)) {
      fprintf(stderr, "connection %d: %s\n", i, strerror(errno));
      return 1;
    }
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &all[i]};
    epoll_ctl(poll, EPOLL_CTL_ADD, all[i].fd, &event);
    all[i].segment = -1;
    ask(&all[i], 1);
  }
  double end = now() + seconds;
  struct epoll_event events[256];
  while (now() < end) {
    int ready = epoll_wait(poll, events, 256, 50);
    for (int i = 0; i < ready; i++) {
      struct player *p = events[i].data.ptr;
      if (p->fd >= 0) readable(p);
    }
  }
  double *spreads = calloc(POSITIONS, sizeof *spreads), *writes = calloc(POSITIONS, sizeof *writes);
  int seen = 0;
  for (int i = 0; i < POSITIONS; i++)
    if (positions[i].count >= count) {
      writes[seen] = (positions[i].last_written - positions[i].first_written) * 1000;
      spreads[seen++] = (positions[i].last - positions[i].first) * 1000;
    }
  qsort(spreads, seen, sizeof *spreads, by_value);
  qsort(writes, seen, sizeof *writes, by_value);
  printf("{\"requests\": %lu, \"bytes\": %lu, \"failures\": %lu, \"behind_ms\": ", requests, bytes, failures);
  print_list(spreads, seen);
  printf(", \"written_behind_ms\": ");
  print_list(writes, seen);
  printf("}\n");
  return 0;
}
