#pragma once
#include <stddef.h>
#include <stdint.h>

// DTLS 1.2 (RFC 6347) over a transport of datagrams that the caller has, by OpenSSL. It makes the keys of SRTP
// (RFC 5764). Each call of `send` is one datagram. Nothing here has a socket, a timer or a lock: a connection is used by
// one thread at a time.

/// A certificate made for this process, and what all connections share.
typedef struct weir_dtls_identity weir_dtls_identity;
/// One connection.
typedef struct weir_dtls weir_dtls;

typedef void (*weir_dtls_send)(void *context, const uint8_t *bytes, size_t count);

enum {
  weir_dtls_fingerprint_size = 32,
  /// The longest digest that `weir_dtls_peer_digest` writes.
  weir_dtls_digest_limit = 64,
  /// Most bytes of keys (RFC 5764 §4.2): two of 16 + 14.
  weir_dtls_keys_limit = 88,
};

typedef enum {
  weir_dtls_connecting,
  weir_dtls_connected,
  weir_dtls_closed,
  weir_dtls_failed,
} weir_dtls_state;

/// NULL where OpenSSL refuses. `fingerprint` gets the SHA-256 of the certificate.
weir_dtls_identity *weir_dtls_identity_new(uint8_t fingerprint[weir_dtls_fingerprint_size]);
void weir_dtls_identity_free(weir_dtls_identity *identity);

/// A connection as the client (`active` of RFC 4145) or the server. `peer` names the other end's address: a server asks for a
/// cookie made of it before it sends more than came (RFC 6347 §4.2.1).
weir_dtls *weir_dtls_new(weir_dtls_identity *identity, int is_client, size_t mtu, weir_dtls_send send, void *context);
void weir_dtls_free(weir_dtls *connection);

/// The address that datagrams come from, for the cookie: at most 64 bytes count.
void weir_dtls_set_peer(weir_dtls *connection, const uint8_t *address, size_t count);
/// Whether a client has sent back its cookie: the datagram that did came from the address that is its own.
int weir_dtls_is_validated(const weir_dtls *connection);
/// Goes on without new bytes: a client sends its first message.
weir_dtls_state weir_dtls_step(weir_dtls *connection);
/// Takes one datagram.
weir_dtls_state weir_dtls_receive(weir_dtls *connection, const uint8_t *bytes, size_t count);
/// Milliseconds until `weir_dtls_timeout` is due; -1 for none.
long weir_dtls_wait(weir_dtls *connection);
/// Sends again what was not answered.
weir_dtls_state weir_dtls_timeout(weir_dtls *connection);
/// Tells the peer that it ends.
void weir_dtls_close(weir_dtls *connection);

/// Digest of the peer's certificate by an algorithm's name (`sha-256`, RFC 8122 §5). Returns its length; 0 if there is no
/// certificate, or no such algorithm.
size_t weir_dtls_peer_digest(weir_dtls *connection, const char *algorithm, uint8_t out[weir_dtls_digest_limit]);
/// The SRTP profile that was chosen, by its number (RFC 5764 §4.1.2, RFC 7714 §14.2); 0 for none.
unsigned long weir_dtls_profile(weir_dtls *connection);
/// Writes `count` bytes of keys. 0 if that fails.
int weir_dtls_keys(weir_dtls *connection, uint8_t *out, size_t count);
