/* The crowd of players.c over HTTP/2 with TLS (RFC 9113), one connection each, on one thread: each waits for the next part of the
 * playlist, fetches that part if told to, and waits again.
 *
 *   players2 HOST PORT PLAYLIST-PATH COUNT SECONDS parts|waits|idle RESET-PERCENT
 *
 * `waits` leaves the parts out; `idle` asks once and keeps the connection.
 * RESET-PERCENT of the players reset each request for a playlist that has to wait, as players do that seek, and ask again. Prints
 * a line when all have shaken hands, then what players.c prints but for the kernel's times. Headers are encoded as common clients do (the authority in the table), and not decoded but for the
 * status. Windows are large enough for a part. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { LIST = 65536, INPUT = 9 + 16384, POSITIONS = 1 << 16, WINDOW = 1 << 24, WIDEN = 1 << 20 };
enum { DATA, HEADERS, RST_STREAM = 3, SETTINGS, PING = 6, GOAWAY, WINDOW_UPDATE };
enum { ACK = 1, END_STREAM = 1, END_HEADERS = 4 };

struct player {
  int fd;
  SSL *ssl;
  uint32_t stream;    /* of the newest request; 0 before the first */
  int is_playlist;    /* kind of the response in progress */
  int resets;         /* resets each awaited playlist once */
  long segment, part; /* the requested position; -1 before the first playlist */
  long next[2];       /* the one after it */
  uint32_t taken;     /* bytes since the window was widened last */
  size_t have, input_have;
  unsigned char input[INPUT];
  char list[LIST];
};

struct position {
  double first, last;
  int count;
};

static struct position *positions;
static const char *path, *host;
static char folder[512], authority[64];
static int fetches_parts, is_idle;
static uint64_t requests, bytes, failures;
static long origin_segment = -1;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}

static void lose(struct player *p, const char *why) {
  if (!failures++) fprintf(stderr, "asked for %ld.%ld: %s\n", p->segment, p->part, why);
  close(p->fd);
  p->fd = -1;
}

static size_t frame(unsigned char *at, uint32_t length, int type, int flags, uint32_t stream) {
  at[0] = length >> 16, at[1] = length >> 8, at[2] = length, at[3] = type, at[4] = flags;
  at[5] = stream >> 24 & 127, at[6] = stream >> 16, at[7] = stream >> 8, at[8] = stream;
  return 9 + length;
}

static void number(unsigned char *at, uint32_t value) {
  at[0] = value >> 24, at[1] = value >> 16, at[2] = value >> 8, at[3] = value;
}

static void give(struct player *p, const unsigned char *data, size_t length) {
  if (p->fd >= 0 && SSL_write(p->ssl, data, length) != (int)length) lose(p, "it takes no bytes");
}

/* A literal value without Huffman codes (RFC 7541 §5.2). */
static size_t text(unsigned char *at, const char *value) {
  size_t length = strlen(value), rest = length, head = 1;
  if (length < 127) {
    at[0] = length;
  } else {
    at[0] = 127;
    for (rest = length - 127; rest >= 128; rest >>= 7) at[head++] = (rest & 127) | 128;
    at[head++] = rest;
  }
  memcpy(at + head, value, length);
  return head + length;
}

static void request(struct player *p, const char *target) {
  unsigned char out[1200];
  size_t at = 9;
  out[at++] = 0x82; /* :method GET */
  out[at++] = 0x87; /* :scheme https */
  out[at++] = 0x04; /* :path, not in the table */
  at += text(out + at, target);
  if (p->stream) out[at++] = 0x80 | 62; /* :authority, of the table */
  else out[at++] = 0x41, at += text(out + at, authority);
  p->stream = p->stream ? p->stream + 2 : 1;
  frame(out, at - 9, HEADERS, END_STREAM | END_HEADERS, p->stream);
  give(p, out, at);
  requests++;
}

static void ask(struct player *p, int is_playlist) {
  char target[1024];
  p->is_playlist = is_playlist;
  p->have = 0;
  if (!is_playlist) snprintf(target, sizeof target, "%s/%ld.%ld.m4s", folder, p->segment, p->part);
  else if (p->segment < 0) snprintf(target, sizeof target, "%s", path);
  else snprintf(target, sizeof target, "%s?_HLS_msn=%ld&_HLS_part=%ld", path, p->segment, p->part);
  request(p, target);
  if (is_playlist && p->resets && p->segment >= 0) {
    unsigned char out[13];
    number(out + 9, 8); /* CANCEL */
    give(p, out, frame(out, 4, RST_STREAM, 0, p->stream));
    request(p, target);
  }
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
  if (is_idle) return;
  p->list[p->have] = 0;
  struct position *at = p->segment >= 0 ? place(p->segment, p->part) : 0;
  if (at) {
    double time = now();
    if (!at->count++) at->first = time;
    at->last = time;
  }
  char *hint = strstr(p->list, "#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"");
  if (!hint || sscanf(hint + 35, "%ld.%ld.m4s", &p->next[0], &p->next[1]) != 2) return lose(p, "a playlist without a hint");
  char name[64];
  snprintf(name, sizeof name, "\"%ld.%ld.m4s\"", p->segment, p->part);
  char *listed = strstr(p->list, name);
  if (fetches_parts && listed && listed < hint) ask(p, 0);
  else next_position(p);
}

static void take_data(struct player *p, const unsigned char *data, uint32_t length) {
  if (p->is_playlist && p->have + length < sizeof p->list) {
    memcpy(p->list + p->have, data, length);
    p->have += length;
  }
}

static void take(struct player *p, int type, int flags, uint32_t stream, const unsigned char *body, uint32_t length) {
  unsigned char out[32];
  if (type == SETTINGS && !(flags & ACK)) return give(p, out, frame(out, 0, SETTINGS, ACK, 0));
  if (type == PING && !(flags & ACK)) {
    memcpy(out + 9, body, 8);
    return give(p, out, frame(out, 8, PING, ACK, 0));
  }
  if (type == GOAWAY) return lose(p, "the server ends the connection");
  if (type == DATA) {
    p->taken += length;
    if (p->taken > WIDEN) {
      number(out + 9, p->taken);
      p->taken = 0;
      give(p, out, frame(out, 4, WINDOW_UPDATE, 0, 0));
    }
  }
  /* What is late on a stream that was reset. */
  if (stream != p->stream || (type != DATA && type != HEADERS && type != RST_STREAM)) return;
  if (type == RST_STREAM) return lose(p, "the server resets the stream");
  if (type == HEADERS) {
    uint32_t at = 0;
    while (at < length && (body[at] & 0xe0) == 0x20) at++; /* the size of the table */
    if (at >= length || body[at] != 0x88) return lose(p, "the status is not 200");
  } else {
    take_data(p, body, length);
  }
  if (!(flags & END_STREAM)) return;
  if (p->is_playlist) take_playlist(p);
  else next_position(p);
}

static void readable(struct player *p) {
  while (p->fd >= 0) {
    int count = SSL_read(p->ssl, p->input + p->input_have, sizeof p->input - p->input_have);
    if (count <= 0) {
      if (SSL_get_error(p->ssl, count) == SSL_ERROR_WANT_READ) return;
      return lose(p, "the connection is lost");
    }
    bytes += count;
    p->input_have += count;
    size_t at = 0;
    while (p->fd >= 0 && p->input_have - at >= 9) {
      unsigned char *head = p->input + at;
      uint32_t length = head[0] << 16 | head[1] << 8 | head[2];
      if (length > INPUT - 9) return lose(p, "a frame is too long");
      if (p->input_have - at < 9 + length) break;
      uint32_t stream = (uint32_t)(head[5] & 127) << 24 | head[6] << 16 | head[7] << 8 | head[8];
      take(p, head[3], head[4], stream, head + 9, length);
      at += 9 + length;
    }
    memmove(p->input, p->input + at, p->input_have - at);
    p->input_have -= at;
  }
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static void print_list(const char *name, const double *values, int count) {
  printf(", \"%s\": [", name);
  for (int i = 0; i < count; i++) printf("%s%.2f", i ? ", " : "", values[i]);
  printf("]");
}

/* Connects and shakes hands, one player after the other, then sends the preface with settings and the window. */
static int begin(struct player *p, SSL_CTX *context, const struct sockaddr_in *address) {
  static const unsigned char protocol[] = "\x02h2";
  p->fd = socket(AF_INET, SOCK_STREAM, 0);
  int one = 1;
  setsockopt(p->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  if (connect(p->fd, (const struct sockaddr *)address, sizeof *address)) return -1;
  p->ssl = SSL_new(context);
  SSL_set_alpn_protos(p->ssl, protocol, 3);
  SSL_set_fd(p->ssl, p->fd);
  if (SSL_connect(p->ssl) != 1) return -1;
  const unsigned char *chosen;
  unsigned length;
  SSL_get0_alpn_selected(p->ssl, &chosen, &length);
  if (length != 2 || memcmp(chosen, "h2", 2)) return -1;
  fcntl(p->fd, F_SETFL, O_NONBLOCK);
  unsigned char out[64] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  unsigned char *at = out + 24;
  at[9] = 0, at[10] = 4; /* SETTINGS_INITIAL_WINDOW_SIZE */
  number(at + 11, WINDOW);
  at += frame(at, 6, SETTINGS, 0, 0);
  number(at + 9, WINDOW);
  at += frame(at, 4, WINDOW_UPDATE, 0, 0);
  give(p, out, at - out);
  p->segment = -1;
  ask(p, 1);
  return p->fd < 0 ? -1 : 0;
}

int main(int argc, char **argv) {
  if (argc != 8) return 2;
  host = argv[1];
  path = argv[3];
  int count = atoi(argv[4]), percent = atoi(argv[7]);
  double seconds = atof(argv[5]);
  fetches_parts = !strcmp(argv[6], "parts");
  is_idle = !strcmp(argv[6], "idle");
  snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
  snprintf(authority, sizeof authority, "%s:%s", host, argv[2]);
  signal(SIGPIPE, SIG_IGN);
  positions = calloc(POSITIONS, sizeof *positions);
  struct player *all = calloc(count, sizeof *all);
  SSL_CTX *context = SSL_CTX_new(TLS_client_method());
  int poll = epoll_create1(0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[2]))};
  if (!positions || !all || !context || poll < 0 || inet_pton(AF_INET, host, &address.sin_addr) != 1) return 2;
  for (int i = 0; i < count; i++) {
    all[i].resets = percent > 0 && i % (100 / percent) == 0;
    if (begin(&all[i], context, &address)) {
      fprintf(stderr, "connection %d: %s\n", i, strerror(errno));
      return 1;
    }
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &all[i]};
    epoll_ctl(poll, EPOLL_CTL_ADD, all[i].fd, &event);
    readable(&all[i]);
  }
  printf("ready\n");
  fflush(stdout);
  double end = now() + seconds;
  struct epoll_event events[256];
  while (now() < end) {
    int ready = epoll_wait(poll, events, 256, 50);
    for (int i = 0; i < ready; i++) readable(events[i].data.ptr);
  }
  double *spreads = calloc(POSITIONS, sizeof *spreads);
  int seen = 0;
  for (int i = 0; i < POSITIONS; i++)
    if (positions[i].count >= count) spreads[seen++] = (positions[i].last - positions[i].first) * 1000;
  qsort(spreads, seen, sizeof *spreads, by_value);
  printf("{\"requests\": %lu, \"bytes\": %lu, \"failures\": %lu", requests, bytes, failures);
  print_list("behind_ms", spreads, seen);
  printf("}\n");
  return 0;
}
