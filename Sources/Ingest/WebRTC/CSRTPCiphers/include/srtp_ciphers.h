#pragma once

// The ciphers of SRTP by OpenSSL. Debian's libsrtp2 has NSS for them, which makes a context for each packet: that took more time than
// all else that a packet needs. libsrtp2 keeps what is SRTP: keys, rollover counters, replays, RTCP. Nothing here has a lock:
// sessions are used by one thread at a time.

/// Puts OpenSSL in the place of libsrtp2's own ciphers (AES-CM, AES-GCM, HMAC-SHA1) for sessions that are made later. Once, behind
/// `srtp_init`. libsrtp2 tests each before it takes it. 1 if it took all; those that it did not take stay its own.
int weir_srtp_use_openssl(void);
