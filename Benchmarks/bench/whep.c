/* A crowd of viewers by WebRTC (WHEP) on one thread. Each makes an offer, completes ICE and DTLS, and checks and decrypts each
 * packet that it gets (SRTP), as a browser does; it reports (RTCP) and renews its consent (STUN) as one.
 *
 *   whep HOST PORT PATH COUNT SECONDS
 *
 * COUNT viewers come one after the other; then it counts for SECONDS. Prints one line of JSON: viewers that were connected
 * and that got media until the end, packets and bytes (of RTP, encrypted), packets that were not made with the keys, those
 * that never came (by their numbers), and the longest time without a packet of video for a viewer (ms). */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <srtp2/srtp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 32, DATAGRAM = 2048, WAVE = 16, MTU = 1200, ANSWER = 65536 };

/* One sender of media: audio or video. */
struct source {
  uint32_t id;
  uint64_t first, highest; /* numbers with their turns */
  uint64_t packets;
  double last;
};

struct viewer {
  int fd;
  char session[512];
  char fragment[9], password[25];              /* its own */
  char peer_fragment[257], peer_password[257]; /* the server's */
  int is_reachable, is_connected;
  double asked, reported;
  SSL *ssl;
  BIO *in, *out;
  srtp_t inbound, outbound;
  struct source sources[2];
  int video; /* which of them has most packets */
  uint64_t packets, bytes, refused;
  double worst;
};

static const char *host, *path;
static int port;
static struct sockaddr_in server;
static SSL_CTX *context;
static char fingerprint[3 * EVP_MAX_MD_SIZE];
static double counted_since;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}

static void die(const char *what) {
  fprintf(stderr, "whep: %s\n", what);
  exit(1);
}

/* MARK: HTTP */

static int dial(void) {
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
  inet_pton(AF_INET, host, &to.sin_addr);
  int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  if (connect(fd, (struct sockaddr *)&to, sizeof to)) die("cannot connect");
  return fd;
}

/* A whole response; its status. */
static int request(const char *method, const char *where, const char *body, char *answer) {
  char head[1024];
  int fd = dial();
  snprintf(head, sizeof head,
           "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\nContent-Type: application/sdp\r\nContent-Length: %zu\r\n\r\n",
           method, where, host, strlen(body));
  if (write(fd, head, strlen(head)) < 0 || write(fd, body, strlen(body)) < 0) die("cannot ask");
  size_t have = 0;
  ssize_t count;
  while (have < ANSWER - 1 && (count = read(fd, answer + have, ANSWER - 1 - have)) > 0) have += count;
  close(fd);
  answer[have] = 0;
  int status = 0;
  sscanf(answer, "HTTP/1.1 %d", &status);
  return status;
}

/* The text behind a name, to the end of its line. */
static void field(const char *text, const char *name, char *value, size_t room) {
  const char *found = strcasestr(text, name);
  if (!found) die(name);
  found += strlen(name);
  size_t length = strcspn(found, "\r\n");
  if (length >= room) die("too long");
  memcpy(value, found, length);
  value[length] = 0;
}

static void random_text(char *text, size_t count) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
  unsigned char bytes[64];
  RAND_bytes(bytes, count);
  for (size_t i = 0; i < count; i++) text[i] = letters[bytes[i] % (sizeof letters - 1)];
  text[count] = 0;
}

static int section(char *out, size_t room, const struct viewer *v, const char *kind, int mid, const char *formats) {
  return snprintf(out, room,
                  "m=%s 9 UDP/TLS/RTP/SAVPF %s\r\nc=IN IP4 0.0.0.0\r\na=ice-ufrag:%s\r\na=ice-pwd:%s\r\n"
                  "a=fingerprint:sha-256 %s\r\na=setup:actpass\r\na=mid:%d\r\na=recvonly\r\na=rtcp-mux\r\n",
                  kind, formats, v->fragment, v->password, fingerprint, mid);
}

static void offer(struct viewer *v) {
  char text[8192], *answer = malloc(ANSWER);
  random_text(v->fragment, 8);
  random_text(v->password, 24);
  int n = snprintf(text, sizeof text, "v=0\r\no=- 1 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0 1\r\n");
  n += section(text + n, sizeof text - n, v, "audio", 0, "111");
  n += snprintf(text + n, sizeof text - n, "a=rtpmap:111 opus/48000/2\r\n");
  n += section(text + n, sizeof text - n, v, "video", 1, "96");
  snprintf(text + n, sizeof text - n,
           "a=rtpmap:96 H264/90000\r\na=fmtp:96 packetization-mode=1;profile-level-id=42e01f\r\n"
           "a=rtcp-fb:96 nack\r\na=rtcp-fb:96 nack pli\r\na=rtcp-fb:96 goog-remb\r\n");
  int status = request("POST", path, text, answer);
  if (status != 201) {
    fprintf(stderr, "%s\n", answer);
    die("the offer was refused");
  }
  field(answer, "Location: ", v->session, sizeof v->session);
  field(answer, "a=ice-ufrag:", v->peer_fragment, sizeof v->peer_fragment);
  field(answer, "a=ice-pwd:", v->peer_password, sizeof v->peer_password);
  const char *candidate = answer;
  char address[64];
  int media = 0;
  while ((candidate = strstr(candidate, "a=candidate:"))) {
    if (sscanf(candidate, "a=candidate:%*s 1 udp %*u %63s %d", address, &media) == 2) break;
    candidate++;
  }
  if (!candidate) die("no candidate by UDP");
  server.sin_family = AF_INET;
  server.sin_port = htons(media);
  inet_pton(AF_INET, address, &server.sin_addr);
  free(answer);
}

/* MARK: STUN (RFC 8489) */

static uint32_t crc(const uint8_t *bytes, size_t count) {
  uint32_t sum = ~0u;
  while (count--) {
    sum ^= *bytes++;
    for (int i = 0; i < 8; i++) sum = sum >> 1 ^ (sum & 1 ? 0xEDB88320u : 0);
  }
  return ~sum;
}

static size_t attribute(uint8_t *at, uint16_t type, const void *value, uint16_t count) {
  uint16_t words[2] = {htons(type), htons(count)};
  memcpy(at, words, 4);
  memcpy(at + 4, value, count);
  memset(at + 4 + count, 0, -count & 3);
  return 4 + ((count + 3) & ~3);
}

static void set_length(uint8_t *message, size_t count) {
  uint16_t length = htons(count - 20);
  memcpy(message + 2, &length, 2);
}

static void check(struct viewer *v) {
  uint8_t m[1024] = {0, 1, 0, 0, 0x21, 0x12, 0xA4, 0x42}, digest[20];
  char name[600];
  uint32_t priority = htonl(126u << 24 | 65535 << 8 | 255), size = 20;
  uint64_t tie = (uint64_t)(uintptr_t)v;
  size_t n = 20;
  RAND_bytes(m + 8, 12);
  snprintf(name, sizeof name, "%s:%s", v->peer_fragment, v->fragment);
  n += attribute(m + n, 0x0006, name, strlen(name));
  n += attribute(m + n, 0x0024, &priority, 4);
  n += attribute(m + n, 0x802A, &tie, 8);
  n += attribute(m + n, 0x0025, "", 0);
  set_length(m, n + 24);
  HMAC(EVP_sha1(), v->peer_password, strlen(v->peer_password), m, n, digest, &size);
  n += attribute(m + n, 0x0008, digest, 20);
  set_length(m, n + 8);
  uint32_t sum = htonl(crc(m, n) ^ 0x5354554E);
  n += attribute(m + n, 0x8028, &sum, 4);
  send(v->fd, m, n, 0);
  v->asked = now();
}

/* MARK: DTLS */

static int take_any(int ok, X509_STORE_CTX *store) {
  (void)ok;
  (void)store;
  return 1;
}

static void make_identity(void) {
  context = SSL_CTX_new(DTLS_method());
  EVP_PKEY *key = EVP_EC_gen("P-256");
  X509 *certificate = X509_new();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 86400);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC, (const uint8_t *)"viewer", -1, -1, 0);
  X509_set_issuer_name(certificate, X509_get_subject_name(certificate));
  X509_set_pubkey(certificate, key);
  X509_sign(certificate, key, EVP_sha256());
  SSL_CTX_use_certificate(context, certificate);
  SSL_CTX_use_PrivateKey(context, key);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, take_any);
  SSL_CTX_set_tlsext_use_srtp(context, "SRTP_AEAD_AES_128_GCM:SRTP_AES128_CM_SHA1_80");
  uint8_t digest[EVP_MAX_MD_SIZE];
  unsigned count = 0;
  X509_digest(certificate, EVP_sha256(), digest, &count);
  for (unsigned i = 0; i < count; i++) sprintf(fingerprint + 3 * i, i + 1 < count ? "%02X:" : "%02X", digest[i]);
}

/* Sends what DTLS has to say: each record is a datagram. */
static void pass_on(struct viewer *v) {
  char *bytes;
  long count = BIO_get_mem_data(v->out, &bytes);
  for (long at = 0; at + 13 <= count;) {
    long length = 13 + ((uint8_t)bytes[at + 11] << 8 | (uint8_t)bytes[at + 12]);
    send(v->fd, bytes + at, length, 0);
    at += length;
  }
  (void)BIO_reset(v->out);
}

static void secure(struct viewer *v) {
  uint8_t keys[60];
  SRTP_PROTECTION_PROFILE *chosen = SSL_get_selected_srtp_profile(v->ssl);
  if (!chosen) die("no profile of SRTP");
  int is_gcm = chosen->id == SRTP_AEAD_AES_128_GCM, salt = is_gcm ? 12 : 14;
  SSL_export_keying_material(v->ssl, keys, 2 * (16 + salt), "EXTRACTOR-dtls_srtp", 19, NULL, 0, 0);
  for (int side = 0; side < 2; side++) { /* the client's, the server's */
    uint8_t key[30];
    memcpy(key, keys + 16 * side, 16);
    memcpy(key + 16, keys + 32 + salt * side, salt);
    srtp_policy_t policy = {0};
    srtp_profile_t profile = is_gcm ? srtp_profile_aead_aes_128_gcm : srtp_profile_aes128_cm_sha1_80;
    srtp_crypto_policy_set_from_profile_for_rtp(&policy.rtp, profile);
    srtp_crypto_policy_set_from_profile_for_rtcp(&policy.rtcp, profile);
    policy.ssrc.type = side ? ssrc_any_inbound : ssrc_any_outbound;
    policy.window_size = 1024;
    policy.key = key;
    if (srtp_create(side ? &v->inbound : &v->outbound, &policy)) die("SRTP refuses the keys");
  }
  v->is_connected = 1;
}

static void advance(struct viewer *v) {
  int result = SSL_do_handshake(v->ssl);
  pass_on(v);
  if (result == 1 && !v->is_connected) secure(v);
  if (result != 1 && SSL_get_error(v->ssl, result) == SSL_ERROR_SSL) die("the handshake failed");
}

static void begin(struct viewer *v) {
  v->is_reachable = 1;
  v->ssl = SSL_new(context);
  v->in = BIO_new(BIO_s_mem());
  v->out = BIO_new(BIO_s_mem());
  BIO_set_mem_eof_return(v->in, -1);
  SSL_set_bio(v->ssl, v->in, v->out);
  SSL_set_options(v->ssl, SSL_OP_NO_QUERY_MTU);
  SSL_set_mtu(v->ssl, MTU);
  SSL_set_connect_state(v->ssl);
  advance(v);
}

/* MARK: media */

static void count(struct viewer *v, const uint8_t *packet, int size, double at) {
  uint32_t id = ntohl(*(const uint32_t *)(packet + 8));
  struct source *s = v->sources[0].id == id || !v->sources[0].packets ? &v->sources[0] : &v->sources[1];
  uint16_t number = packet[2] << 8 | packet[3];
  if (!s->packets) {
    s->id = id;
    s->first = s->highest = 65536 + number;
  }
  /* RFC 3711 §3.3.1: the turn that lies nearest. */
  uint64_t whole = s->highest + (int16_t)(number - (uint16_t)s->highest);
  if (whole > s->highest) s->highest = whole;
  s->packets++;
  v->packets++;
  v->bytes += size;
  int which = s - v->sources;
  if (s->packets > v->sources[v->video].packets) v->video = which;
  if (which == v->video && s->last > 0 && at - s->last > v->worst) v->worst = at - s->last;
  s->last = at;
}

static void receive(struct viewer *v) {
  static uint8_t room[BATCH][DATAGRAM];
  static struct iovec vectors[BATCH];
  static struct mmsghdr messages[BATCH];
  for (int i = 0; i < BATCH; i++) {
    vectors[i] = (struct iovec){room[i], DATAGRAM};
    messages[i].msg_hdr = (struct msghdr){.msg_iov = &vectors[i], .msg_iovlen = 1};
  }
  int got = recvmmsg(v->fd, messages, BATCH, MSG_DONTWAIT, NULL);
  double at = now();
  for (int i = 0; i < got; i++) {
    uint8_t *bytes = room[i];
    int size = messages[i].msg_len;
    if (size < 12) continue;
    if (bytes[0] < 4) {
      if (bytes[0] == 1 && bytes[1] == 1 && !v->is_reachable) begin(v);
    } else if (bytes[0] >= 20 && bytes[0] < 64) {
      if (!v->ssl || v->is_connected) continue;
      BIO_write(v->in, bytes, size);
      advance(v);
    } else if (bytes[0] >> 6 == 2 && v->is_connected) {
      if (bytes[1] >= 192 && bytes[1] < 224) {
        v->refused += srtp_unprotect_rtcp(v->inbound, bytes, &size) != srtp_err_status_ok;
      } else {
        int sent = size;
        if (srtp_unprotect(v->inbound, bytes, &size) != srtp_err_status_ok) v->refused++;
        else if (counted_since > 0) count(v, bytes, sent, at);
      }
    }
  }
}

/* What a receiver says each second (RFC 3550 §6.4.2). */
static void report(struct viewer *v) {
  uint8_t packet[64 + SRTP_MAX_TRAILER_LEN] = {0x81, 201, 0, 7, 0, 0, 0, 1};
  const struct source *s = &v->sources[v->video];
  uint32_t words[6] = {htonl(s->id), 0, htonl((uint32_t)s->highest), 0, 0, 0};
  memcpy(packet + 8, words, sizeof words);
  int size = 32;
  if (srtp_protect_rtcp(v->outbound, packet, &size) == srtp_err_status_ok) send(v->fd, packet, size, 0);
  v->reported = now();
}

/* Serves all viewers once. */
static void serve(struct viewer *viewers, int count, int epoll) {
  struct epoll_event events[256];
  int ready = epoll_wait(epoll, events, 256, 20);
  for (int i = 0; i < ready; i++) receive(events[i].data.ptr);
  static double looked;
  double at = now();
  if (at - looked < 0.05) return;
  looked = at;
  for (int i = 0; i < count; i++) {
    struct viewer *v = &viewers[i];
    if (at - v->asked > (v->is_reachable ? 2.5 : 0.2)) check(v);
    if (v->ssl && !v->is_connected && DTLSv1_handle_timeout(v->ssl) > 0) pass_on(v);
    if (v->is_connected && at - v->reported > 1) report(v);
  }
}

int main(int argc, char **argv) {
  if (argc != 6) die("whep HOST PORT PATH COUNT SECONDS");
  host = argv[1];
  port = atoi(argv[2]);
  path = argv[3];
  int wanted = atoi(argv[4]), epoll = epoll_create1(0), connected = 0, lasting = 0;
  double seconds = atof(argv[5]);
  if (srtp_init()) die("libsrtp");
  make_identity();
  struct viewer *viewers = calloc(wanted, sizeof *viewers);
  for (int begun = 0; begun < wanted;) {
    int end = begun + WAVE < wanted ? begun + WAVE : wanted;
    for (int i = begun; i < end; i++) {
      struct viewer *v = &viewers[i];
      offer(v);
      v->fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
      int room = 1 << 20;
      setsockopt(v->fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
      if (connect(v->fd, (struct sockaddr *)&server, sizeof server)) die("cannot reach the server's port");
      struct epoll_event event = {.events = EPOLLIN, .data.ptr = v};
      epoll_ctl(epoll, EPOLL_CTL_ADD, v->fd, &event);
      check(v);
    }
    begun = end;
    double deadline = now() + 10;
    do {
      serve(viewers, begun, epoll);
      connected = 0;
      for (int i = 0; i < begun; i++) connected += viewers[i].is_connected;
    } while (connected < begun && now() < deadline);
  }
  fprintf(stderr, "connected %d\n", connected);
  for (double calm = now() + 2; now() < calm;) serve(viewers, wanted, epoll);
  counted_since = now();
  while (now() < counted_since + seconds) serve(viewers, wanted, epoll);
  double took = now() - counted_since, worst = 0, last = 0;
  uint64_t packets = 0, bytes = 0, refused = 0, missing = 0;
  /* This process may have been held up itself: a viewer lasts if it got what the others did. */
  for (int i = 0; i < wanted; i++)
    if (viewers[i].sources[viewers[i].video].last > last) last = viewers[i].sources[viewers[i].video].last;
  for (int i = 0; i < wanted; i++) {
    struct viewer *v = &viewers[i];
    packets += v->packets;
    bytes += v->bytes;
    refused += v->refused;
    if (v->worst > worst) worst = v->worst;
    lasting += v->sources[v->video].packets > 0 && last - v->sources[v->video].last < 1;
    for (int k = 0; k < 2; k++) {
      const struct source *s = &v->sources[k];
      if (s->packets) missing += s->highest - s->first + 1 - s->packets;
    }
  }
  printf("{\"viewers\": %d, \"connected\": %d, \"lasting\": %d, \"seconds\": %.2f, \"packets\": %lu, \"bytes\": %lu, "
         "\"refused\": %lu, \"missing\": %lu, \"longest_gap_ms\": %.0f}\n",
         wanted, connected, lasting, took, packets, bytes, refused, missing, worst * 1000);
  fflush(stdout);
  char *answer = malloc(ANSWER);
  for (int i = 0; i < wanted; i++) request("DELETE", viewers[i].session, "", answer);
  return 0;
}
