#include "srtp_ciphers.h"

#include <openssl/evp.h>
#include <openssl/params.h>
#include <srtp2/auth.h>
#include <srtp2/cipher.h>
#include <stdlib.h>
#include <string.h>

enum {
  key_size = 16,
  block_size = 16,
  // RFC 3711 §4.1.1 and RFC 7714 §8.1.
  counter_salt_size = 14,
  gcm_salt_size = 12,
  longest_tag = 16,
  sha1_size = 20,
};

// What a libsrtp2 cipher keeps of a key.
typedef struct {
  srtp_cipher_t cipher;
  EVP_CIPHER_CTX *context;
  // Of the counter mode: the salt, which each packet's value is put upon.
  uint8_t salt[block_size];
  int tag_size;
  // Of GCM: 1 for encryption.
  int encrypts;
} cipher_state;

static const srtp_cipher_type_t counter_mode, galois_mode;
static const srtp_auth_type_t hmac_sha1;

static srtp_err_status_t status(int is_done, srtp_err_status_t otherwise) {
  return is_done ? srtp_err_status_ok : otherwise;
}

static srtp_err_status_t make_cipher(srtp_cipher_pointer_t *out, const srtp_cipher_type_t *type, int key_length, int tag) {
  cipher_state *made = calloc(1, sizeof *made);
  if (made == NULL) return srtp_err_status_alloc_fail;
  made->context = EVP_CIPHER_CTX_new();
  if (made->context == NULL) {
    free(made);
    return srtp_err_status_alloc_fail;
  }
  made->cipher = (srtp_cipher_t){.type = type, .state = made, .key_len = key_length, .algorithm = (int)type->id};
  made->tag_size = tag;
  *out = &made->cipher;
  return srtp_err_status_ok;
}

static srtp_err_status_t free_cipher(srtp_cipher_pointer_t cipher) {
  cipher_state *state = cipher->state;
  EVP_CIPHER_CTX_free(state->context);
  OPENSSL_cleanse(state, sizeof *state);
  free(state);
  return srtp_err_status_ok;
}

// MARK: AES in counter mode (RFC 3711 §4.1.1)

static srtp_err_status_t counter_alloc(srtp_cipher_pointer_t *out, int key_length, int tag) {
  (void)tag;
  if (key_length != key_size + counter_salt_size) return srtp_err_status_bad_param;
  return make_cipher(out, &counter_mode, key_length, 0);
}

static srtp_err_status_t counter_init(void *pointer, const uint8_t *key) {
  cipher_state *state = pointer;
  memset(state->salt, 0, sizeof state->salt);
  memcpy(state->salt, key + key_size, counter_salt_size);
  return status(EVP_EncryptInit_ex(state->context, EVP_aes_128_ctr(), NULL, key, NULL), srtp_err_status_init_fail);
}

static srtp_err_status_t counter_set_iv(void *pointer, uint8_t *value, srtp_cipher_direction_t direction) {
  (void)direction;
  cipher_state *state = pointer;
  uint8_t counter[block_size];
  for (int place = 0; place < block_size; place++) counter[place] = state->salt[place] ^ value[place];
  return status(EVP_EncryptInit_ex(state->context, NULL, NULL, NULL, counter), srtp_err_status_cipher_fail);
}

// Encryption is decryption. The key stream goes on where the last call left it.
static srtp_err_status_t counter_change(void *pointer, uint8_t *bytes, unsigned int *count) {
  cipher_state *state = pointer;
  int written = 0;
  int is_done = EVP_EncryptUpdate(state->context, bytes, &written, bytes, (int)*count) && written == (int)*count;
  return status(is_done, srtp_err_status_cipher_fail);
}

// MARK: AES-GCM (RFC 7714)

static srtp_err_status_t galois_alloc(srtp_cipher_pointer_t *out, int key_length, int tag) {
  if (key_length != key_size + gcm_salt_size || (tag != longest_tag && tag != longest_tag / 2))
    return srtp_err_status_bad_param;
  return make_cipher(out, &galois_mode, key_length, tag);
}

static srtp_err_status_t galois_init(void *pointer, const uint8_t *key) {
  cipher_state *state = pointer;
  return status(EVP_CipherInit_ex(state->context, EVP_aes_128_gcm(), NULL, key, NULL, 1), srtp_err_status_init_fail);
}

static srtp_err_status_t galois_set_iv(void *pointer, uint8_t *value, srtp_cipher_direction_t direction) {
  cipher_state *state = pointer;
  if (direction != srtp_direction_encrypt && direction != srtp_direction_decrypt) return srtp_err_status_bad_param;
  state->encrypts = direction == srtp_direction_encrypt;
  return status(
      EVP_CipherInit_ex(state->context, NULL, NULL, NULL, value, state->encrypts), srtp_err_status_cipher_fail);
}

static srtp_err_status_t galois_set_aad(void *pointer, const uint8_t *bytes, uint32_t count) {
  cipher_state *state = pointer;
  int written = 0;
  return status(EVP_CipherUpdate(state->context, NULL, &written, bytes, (int)count), srtp_err_status_cipher_fail);
}

static int galois_change(cipher_state *state, uint8_t *bytes, unsigned int count) {
  int written = 0;
  return count == 0 || (EVP_CipherUpdate(state->context, bytes, &written, bytes, (int)count) && written == (int)count);
}

static srtp_err_status_t galois_encrypt(void *pointer, uint8_t *bytes, unsigned int *count) {
  cipher_state *state = pointer;
  return status(state->encrypts && galois_change(state, bytes, *count), srtp_err_status_cipher_fail);
}

// The tag stands behind what it is of.
static srtp_err_status_t galois_decrypt(void *pointer, uint8_t *bytes, unsigned int *count) {
  cipher_state *state = pointer;
  if (state->encrypts || *count < (unsigned int)state->tag_size) return srtp_err_status_bad_param;
  unsigned int size = *count - (unsigned int)state->tag_size;
  uint8_t none[block_size];
  int written = 0;
  if (!EVP_CIPHER_CTX_ctrl(state->context, EVP_CTRL_AEAD_SET_TAG, state->tag_size, bytes + size) ||
      !galois_change(state, bytes, size) || EVP_CipherFinal_ex(state->context, none, &written) != 1)
    return srtp_err_status_auth_fail;
  *count = size;
  return srtp_err_status_ok;
}

static srtp_err_status_t galois_get_tag(void *pointer, uint8_t *tag, uint32_t *count) {
  cipher_state *state = pointer;
  uint8_t none[block_size];
  int written = 0;
  if (EVP_CipherFinal_ex(state->context, none, &written) != 1 ||
      !EVP_CIPHER_CTX_ctrl(state->context, EVP_CTRL_AEAD_GET_TAG, state->tag_size, tag))
    return srtp_err_status_cipher_fail;
  *count = (uint32_t)state->tag_size;
  return srtp_err_status_ok;
}

// MARK: HMAC-SHA1 (RFC 3711 §4.2.1)

typedef struct {
  srtp_auth_t auth;
  EVP_MAC_CTX *context;
} auth_state;

static srtp_err_status_t hmac_alloc(srtp_auth_pointer_t *out, int key_length, int tag) {
  if (key_length < 0 || key_length > sha1_size || tag < 0 || tag > sha1_size) return srtp_err_status_bad_param;
  auth_state *made = calloc(1, sizeof *made);
  EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
  // The context keeps the algorithm.
  if (made != NULL && mac != NULL) made->context = EVP_MAC_CTX_new(mac);
  EVP_MAC_free(mac);
  if (made == NULL || made->context == NULL) {
    free(made);
    return srtp_err_status_alloc_fail;
  }
  made->auth = (srtp_auth_t){.type = &hmac_sha1, .state = made, .out_len = tag, .key_len = key_length, .prefix_len = 0};
  *out = &made->auth;
  return srtp_err_status_ok;
}

static srtp_err_status_t hmac_free(srtp_auth_pointer_t auth) {
  auth_state *state = auth->state;
  EVP_MAC_CTX_free(state->context);
  OPENSSL_cleanse(state, sizeof *state);
  free(state);
  return srtp_err_status_ok;
}

static srtp_err_status_t hmac_init(void *pointer, const uint8_t *key, int length) {
  auth_state *state = pointer;
  char digest[] = "SHA1";
  const OSSL_PARAM parameters[] = {OSSL_PARAM_construct_utf8_string("digest", digest, 0), OSSL_PARAM_construct_end()};
  return status(EVP_MAC_init(state->context, key, (size_t)length, parameters), srtp_err_status_auth_fail);
}

// Begins anew with the same key.
static srtp_err_status_t hmac_start(void *pointer) {
  auth_state *state = pointer;
  return status(EVP_MAC_init(state->context, NULL, 0, NULL), srtp_err_status_auth_fail);
}

static srtp_err_status_t hmac_update(void *pointer, const uint8_t *bytes, int count) {
  auth_state *state = pointer;
  return status(EVP_MAC_update(state->context, bytes, (size_t)count), srtp_err_status_auth_fail);
}

static srtp_err_status_t hmac_compute(void *pointer, const uint8_t *bytes, int count, int tag_length, uint8_t *tag) {
  auth_state *state = pointer;
  uint8_t digest[sha1_size];
  size_t written = 0;
  if (tag_length < 0 || tag_length > sha1_size) return srtp_err_status_bad_param;
  if (!EVP_MAC_update(state->context, bytes, (size_t)count) ||
      !EVP_MAC_final(state->context, digest, &written, sizeof digest) || written != sha1_size)
    return srtp_err_status_auth_fail;
  memcpy(tag, digest, (size_t)tag_length);
  return srtp_err_status_ok;
}

// MARK: what libsrtp2 tests them with, beside its own

// RFC 3711 B.2, the first two blocks.
static const uint8_t counter_key[] = {0x2B, 0x7E, 0x15, 0x16, 0x28, 0xAE, 0xD2, 0xA6, 0xAB, 0xF7, 0x15, 0x88, 0x09, 0xCF, 0x4F,
                                      0x3C, 0xF0, 0xF1, 0xF2, 0xF3, 0xF4, 0xF5, 0xF6, 0xF7, 0xF8, 0xF9, 0xFA, 0xFB, 0xFC, 0xFD};
static uint8_t counter_index[block_size];
static const uint8_t counter_clear[32];
static const uint8_t counter_secret[] = {0xE0, 0x3E, 0xAD, 0x09, 0x35, 0xC9, 0x5E, 0x80, 0xE1, 0x66, 0xB1,
                                         0x6D, 0xD9, 0x2B, 0x4E, 0xB4, 0xD2, 0x35, 0x13, 0x16, 0x2B, 0x02,
                                         0xD0, 0xF7, 0x2A, 0x43, 0xA2, 0xFE, 0x4A, 0x5F, 0x97, 0xAB};
static const srtp_cipher_test_case_t counter_case = {
    .key_length_octets = sizeof counter_key,
    .key = counter_key,
    .idx = counter_index,
    .plaintext_length_octets = sizeof counter_clear,
    .plaintext = counter_clear,
    .ciphertext_length_octets = sizeof counter_secret,
    .ciphertext = counter_secret,
};

// Of one block of zeros under a key of zeros (NIST's "GCM specification", case 2): the block, and the tag.
static const uint8_t galois_key[key_size + gcm_salt_size];
static uint8_t galois_index[gcm_salt_size];
static const uint8_t galois_clear[block_size];
static const uint8_t galois_secret[] = {0x03, 0x88, 0xDA, 0xCE, 0x60, 0xB6, 0xA3, 0x92, 0xF3, 0x28, 0xC2,
                                        0xB9, 0x71, 0xB2, 0xFE, 0x78, 0xAB, 0x6E, 0x47, 0xD4, 0x2C, 0xEC,
                                        0x13, 0xBD, 0xF5, 0x3A, 0x67, 0xB2, 0x12, 0x57, 0xBD, 0xDF};
static const uint8_t galois_aad[1];
static const srtp_cipher_test_case_t galois_case = {
    .key_length_octets = sizeof galois_key,
    .key = galois_key,
    .idx = galois_index,
    .plaintext_length_octets = sizeof galois_clear,
    .plaintext = galois_clear,
    .ciphertext_length_octets = sizeof galois_secret,
    .ciphertext = galois_secret,
    .aad_length_octets = 0,
    .aad = galois_aad,
    .tag_length_octets = longest_tag,
};

// RFC 2202, the first case of HMAC-SHA1.
static const uint8_t hmac_key[] = {0x0B, 0x0B, 0x0B, 0x0B, 0x0B, 0x0B, 0x0B, 0x0B, 0x0B, 0x0B,
                                   0x0B, 0x0B, 0x0B, 0x0B, 0x0B, 0x0B, 0x0B, 0x0B, 0x0B, 0x0B};
static const uint8_t hmac_text[] = {'H', 'i', ' ', 'T', 'h', 'e', 'r', 'e'};
static const uint8_t hmac_tag[] = {0xB6, 0x17, 0x31, 0x86, 0x55, 0x05, 0x72, 0x64, 0xE2, 0x8B,
                                   0xC0, 0xB6, 0xFB, 0x37, 0x8C, 0x8E, 0xF1, 0x46, 0xBE, 0x00};
static const srtp_auth_test_case_t hmac_case = {
    .key_length_octets = sizeof hmac_key,
    .key = hmac_key,
    .data_length_octets = sizeof hmac_text,
    .data = hmac_text,
    .tag_length_octets = sizeof hmac_tag,
    .tag = hmac_tag,
};

static const srtp_cipher_type_t counter_mode = {
    .alloc = counter_alloc,
    .dealloc = free_cipher,
    .init = counter_init,
    .encrypt = counter_change,
    .decrypt = counter_change,
    .set_iv = counter_set_iv,
    .description = "AES-128 in counter mode by OpenSSL",
    .test_data = &counter_case,
    .id = SRTP_AES_ICM_128,
};

static const srtp_cipher_type_t galois_mode = {
    .alloc = galois_alloc,
    .dealloc = free_cipher,
    .init = galois_init,
    .set_aad = galois_set_aad,
    .encrypt = galois_encrypt,
    .decrypt = galois_decrypt,
    .set_iv = galois_set_iv,
    .get_tag = galois_get_tag,
    .description = "AES-128 GCM by OpenSSL",
    .test_data = &galois_case,
    .id = SRTP_AES_GCM_128,
};

static const srtp_auth_type_t hmac_sha1 = {
    .alloc = hmac_alloc,
    .dealloc = hmac_free,
    .init = hmac_init,
    .compute = hmac_compute,
    .update = hmac_update,
    .start = hmac_start,
    .description = "HMAC-SHA1 by OpenSSL",
    .test_data = &hmac_case,
    .id = SRTP_HMAC_SHA1,
};

int weir_srtp_use_openssl(void) {
  int counter = srtp_replace_cipher_type(&counter_mode, SRTP_AES_ICM_128) == srtp_err_status_ok;
  int galois = srtp_replace_cipher_type(&galois_mode, SRTP_AES_GCM_128) == srtp_err_status_ok;
  int hmac = srtp_replace_auth_type(&hmac_sha1, SRTP_HMAC_SHA1) == srtp_err_status_ok;
  return counter && galois && hmac;
}
