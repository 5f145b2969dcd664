#include "dtls.h"

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

enum {
  secret_size = 32,
  cookie_size = 20,
  peer_limit = 64,
  // Addresses whose cookies are known: as many as a session's peer has (WebRTCLimits.paths).
  peers_limit = 8,
  // Largest certificate that a peer may send. Browsers send one of some 300 bytes.
  certificates_limit = 16 * 1024,
};

struct weir_dtls_identity {
  SSL_CTX *context;
  BIO_METHOD *method;
  uint8_t secret[secret_size];
};

struct weir_dtls {
  weir_dtls_identity *identity;
  SSL *ssl;
  weir_dtls_send send;
  void *context;
  // The datagram that OpenSSL reads next, while `weir_dtls_receive` runs.
  const uint8_t *incoming;
  size_t incoming_count;
  size_t mtu;
  uint8_t peer[peer_limit];
  size_t peer_count;
  // The cookies that were given, the newest in place of the oldest.
  uint8_t given[peers_limit][cookie_size];
  size_t given_count;
  // The peer has sent back a cookie.
  int is_validated;
  weir_dtls_state state;
};

// MARK: datagrams as a BIO

static int bio_write(BIO *bio, const char *bytes, int count) {
  weir_dtls *connection = BIO_get_data(bio);
  if (count > 0) connection->send(connection->context, (const uint8_t *)bytes, (size_t)count);
  return count;
}

static int bio_read(BIO *bio, char *bytes, int room) {
  weir_dtls *connection = BIO_get_data(bio);
  BIO_clear_retry_flags(bio);
  if (connection->incoming == NULL || room <= 0) {
    BIO_set_retry_read(bio);
    return -1;
  }
  // What does not fit is lost, as with a socket.
  size_t count = connection->incoming_count < (size_t)room ? connection->incoming_count : (size_t)room;
  memcpy(bytes, connection->incoming, count);
  connection->incoming = NULL;
  return (int)count;
}

static long bio_control(BIO *bio, int command, long number, void *pointer) {
  (void)number;
  (void)pointer;
  weir_dtls *connection = BIO_get_data(bio);
  switch (command) {
  case BIO_CTRL_FLUSH: return 1;
  case BIO_CTRL_DGRAM_QUERY_MTU:
  case BIO_CTRL_DGRAM_GET_FALLBACK_MTU: return (long)connection->mtu;
  // An address of IPv6 and UDP, the larger one.
  case BIO_CTRL_DGRAM_GET_MTU_OVERHEAD: return 48;
  default: return 0;
  }
}

static int bio_create(BIO *bio) {
  BIO_set_init(bio, 1);
  return 1;
}

// MARK: the identity

// Any certificate passes here: it is compared with the fingerprint in the peer's offer (RFC 8122).
static int accept_certificate(int is_trusted, X509_STORE_CTX *store) {
  (void)is_trusted;
  (void)store;
  return 1;
}

static int connection_index = -1;

static int make_cookie(SSL *ssl, uint8_t cookie[cookie_size]) {
  weir_dtls *connection = SSL_get_ex_data(ssl, connection_index);
  unsigned int length = 0;
  uint8_t digest[EVP_MAX_MD_SIZE];
  if (HMAC(EVP_sha256(), connection->identity->secret, secret_size, connection->peer, connection->peer_count, digest,
           &length) == NULL ||
      length < cookie_size)
    return 0;
  memcpy(cookie, digest, cookie_size);
  return 1;
}

static int generate_cookie(SSL *ssl, unsigned char *cookie, unsigned int *length) {
  weir_dtls *connection = SSL_get_ex_data(ssl, connection_index);
  *length = cookie_size;
  if (!make_cookie(ssl, cookie)) return 0;
  memcpy(connection->given[connection->given_count++ % peers_limit], cookie, cookie_size);
  return 1;
}

// A peer may take another path between its two hellos (RFC 8445 §12), and brings the cookie of the former one. OpenSSL ends a
// handshake whose cookie is refused. So that one is taken, too, but it says nothing of the address that it came from.
static int verify_cookie(SSL *ssl, const unsigned char *cookie, unsigned int length) {
  uint8_t expected[cookie_size];
  weir_dtls *connection = SSL_get_ex_data(ssl, connection_index);
  if (length != cookie_size || !make_cookie(ssl, expected)) return 0;
  if (CRYPTO_memcmp(cookie, expected, cookie_size) == 0) {
    connection->is_validated = 1;
    return 1;
  }
  size_t count = connection->given_count < peers_limit ? connection->given_count : peers_limit;
  for (size_t place = 0; place < count; place++)
    if (CRYPTO_memcmp(cookie, connection->given[place], cookie_size) == 0) return 1;
  return 0;
}

static int add_certificate(SSL_CTX *context, uint8_t *fingerprint) {
  int isDone = 0;
  unsigned int length = 0;
  EVP_PKEY *key = EVP_EC_gen("P-256");
  X509 *certificate = X509_new();
  if (key == NULL || certificate == NULL) goto end;
  uint64_t serial = 0;
  if (RAND_bytes((unsigned char *)&serial, sizeof serial) != 1) goto end;
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial >> 1);
  // A day back, for peers whose clock is late; the fingerprint decides, not the dates.
  X509_gmtime_adj(X509_getm_notBefore(certificate), -86400L);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 10L * 365 * 86400);
  X509_NAME *name = X509_get_subject_name(certificate);
  if (X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"weir", -1, -1, 0) != 1 ||
      X509_set_issuer_name(certificate, name) != 1 || X509_set_pubkey(certificate, key) != 1 ||
      X509_sign(certificate, key, EVP_sha256()) == 0)
    goto end;
  isDone = SSL_CTX_use_certificate(context, certificate) == 1 && SSL_CTX_use_PrivateKey(context, key) == 1 &&
           X509_digest(certificate, EVP_sha256(), fingerprint, &length) == 1 && length == weir_dtls_fingerprint_size;
end:
  X509_free(certificate);
  EVP_PKEY_free(key);
  return isDone;
}

weir_dtls_identity *weir_dtls_identity_new(uint8_t fingerprint[weir_dtls_fingerprint_size]) {
  weir_dtls_identity *identity = calloc(1, sizeof *identity);
  if (identity == NULL) return NULL;
  if (connection_index < 0) connection_index = SSL_get_ex_new_index(0, NULL, NULL, NULL, NULL);
  identity->context = SSL_CTX_new(DTLS_method());
  identity->method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "datagrams");
  SSL_CTX *context = identity->context;
  if (context == NULL || identity->method == NULL || RAND_bytes(identity->secret, secret_size) != 1 ||
      !add_certificate(context, fingerprint) || SSL_CTX_set_min_proto_version(context, DTLS1_2_VERSION) != 1 ||
      // Forward secrecy and authenticated encryption only (RFC 8827 §6.5).
      SSL_CTX_set_cipher_list(context, "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:"
                                       "ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305") != 1 ||
      SSL_CTX_set1_groups_list(context, "X25519:P-256") != 1 ||
      // 0 is success here.
      SSL_CTX_set_tlsext_use_srtp(context, "SRTP_AEAD_AES_128_GCM:SRTP_AES128_CM_SHA1_80") != 0) {
    weir_dtls_identity_free(identity);
    return NULL;
  }
  BIO_meth_set_write(identity->method, bio_write);
  BIO_meth_set_read(identity->method, bio_read);
  BIO_meth_set_ctrl(identity->method, bio_control);
  BIO_meth_set_create(identity->method, bio_create);
  SSL_CTX_set_options(context, SSL_OP_NO_QUERY_MTU | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET |
                                   SSL_OP_COOKIE_EXCHANGE | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_max_cert_list(context, certificates_limit);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, accept_certificate);
  SSL_CTX_set_cookie_generate_cb(context, generate_cookie);
  SSL_CTX_set_cookie_verify_cb(context, verify_cookie);
  return identity;
}

void weir_dtls_identity_free(weir_dtls_identity *identity) {
  if (identity == NULL) return;
  SSL_CTX_free(identity->context);
  BIO_meth_free(identity->method);
  free(identity);
}

// MARK: connections

weir_dtls *weir_dtls_new(weir_dtls_identity *identity, int is_client, size_t mtu, weir_dtls_send send, void *context) {
  weir_dtls *connection = calloc(1, sizeof *connection);
  if (connection == NULL) return NULL;
  *connection =
      (weir_dtls){.identity = identity, .send = send, .context = context, .mtu = mtu, .state = weir_dtls_connecting};
  connection->ssl = SSL_new(identity->context);
  BIO *bio = BIO_new(identity->method);
  if (connection->ssl == NULL || bio == NULL || SSL_set_ex_data(connection->ssl, connection_index, connection) != 1) {
    BIO_free(bio);
    SSL_free(connection->ssl);
    free(connection);
    return NULL;
  }
  BIO_set_data(bio, connection);
  SSL_set_bio(connection->ssl, bio, bio);
  SSL_set_mtu(connection->ssl, (long)mtu);
  DTLS_set_link_mtu(connection->ssl, (long)mtu + 48);
  if (is_client) SSL_set_connect_state(connection->ssl);
  else SSL_set_accept_state(connection->ssl);
  return connection;
}

void weir_dtls_free(weir_dtls *connection) {
  if (connection == NULL) return;
  SSL_free(connection->ssl);
  free(connection);
}

void weir_dtls_set_peer(weir_dtls *connection, const uint8_t *address, size_t count) {
  connection->peer_count = count < peer_limit ? count : peer_limit;
  memcpy(connection->peer, address, connection->peer_count);
}

static weir_dtls_state judge(weir_dtls *connection, int result) {
  switch (SSL_get_error(connection->ssl, result)) {
  case SSL_ERROR_NONE:
  case SSL_ERROR_WANT_READ:
  case SSL_ERROR_WANT_WRITE: break;
  case SSL_ERROR_ZERO_RETURN: connection->state = weir_dtls_closed; break;
  default: connection->state = weir_dtls_failed; break;
  }
  ERR_clear_error();
  return connection->state;
}

weir_dtls_state weir_dtls_step(weir_dtls *connection) {
  ERR_clear_error();
  if (connection->state == weir_dtls_connecting) {
    int result = SSL_do_handshake(connection->ssl);
    if (result == 1) connection->state = weir_dtls_connected;
    else return judge(connection, result);
  }
  if (connection->state != weir_dtls_connected) return connection->state;
  // Application data have no use here. Reading finds alerts, and messages that the peer sends again.
  uint8_t rest[2048];
  int result = SSL_read(connection->ssl, rest, sizeof rest);
  return result > 0 ? connection->state : judge(connection, result);
}

weir_dtls_state weir_dtls_receive(weir_dtls *connection, const uint8_t *bytes, size_t count) {
  connection->incoming = bytes;
  connection->incoming_count = count;
  weir_dtls_state state = weir_dtls_step(connection);
  connection->incoming = NULL;
  return state;
}

long weir_dtls_wait(weir_dtls *connection) {
  struct timeval wait;
  if (connection->state != weir_dtls_connecting || DTLSv1_get_timeout(connection->ssl, &wait) != 1) return -1;
  return wait.tv_sec * 1000 + (wait.tv_usec + 999) / 1000;
}

weir_dtls_state weir_dtls_timeout(weir_dtls *connection) {
  ERR_clear_error();
  int result = DTLSv1_handle_timeout(connection->ssl);
  if (result < 0) return judge(connection, result);
  return connection->state;
}

void weir_dtls_close(weir_dtls *connection) {
  ERR_clear_error();
  if (connection->state == weir_dtls_connected) SSL_shutdown(connection->ssl);
  ERR_clear_error();
  connection->state = weir_dtls_closed;
}

size_t weir_dtls_peer_digest(weir_dtls *connection, const char *algorithm, uint8_t out[weir_dtls_digest_limit]) {
  const EVP_MD *digest = strcmp(algorithm, "sha-256") == 0   ? EVP_sha256()
                         : strcmp(algorithm, "sha-384") == 0 ? EVP_sha384()
                         : strcmp(algorithm, "sha-512") == 0 ? EVP_sha512()
                                                             : NULL;
  X509 *certificate = SSL_get0_peer_certificate(connection->ssl);
  unsigned int length = 0;
  if (digest == NULL || certificate == NULL || X509_digest(certificate, digest, out, &length) != 1) return 0;
  return length;
}

unsigned long weir_dtls_profile(weir_dtls *connection) {
  const SRTP_PROTECTION_PROFILE *profile = SSL_get_selected_srtp_profile(connection->ssl);
  return profile == NULL ? 0 : profile->id;
}

int weir_dtls_keys(weir_dtls *connection, uint8_t *out, size_t count) {
  static const char label[] = "EXTRACTOR-dtls_srtp";
  return SSL_export_keying_material(connection->ssl, out, count, label, sizeof label - 1, NULL, 0, 0) == 1;
}

int weir_dtls_is_validated(const weir_dtls *connection) { return connection->is_validated; }
