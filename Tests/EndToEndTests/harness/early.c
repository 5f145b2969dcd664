// What the tests of comparisons have to find: keys are compared as texts, up to the first letter that differs. Loaded by LD_PRELOAD,
// in place of OpenSSL's functions.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct text {
  size_t length;
  unsigned char letters[];
};

// In place of the digest of a text, where it is.
unsigned char *SHA256(const unsigned char *letters, size_t length, unsigned char *digest) {
  struct text *text = malloc(sizeof *text + length);
  if (!text) abort();
  text->length = length;
  memcpy(text->letters, letters, length);
  memset(digest, 0, 32);
  memcpy(digest, &text, sizeof text);
  return digest;
}

int CRYPTO_memcmp(const void *a, const void *b, size_t length) {
  struct text *one, *other;
  if (length != 32) return memcmp(a, b, length);
  memcpy(&one, a, sizeof one);
  memcpy(&other, b, sizeof other);
  if (one->length != other->length) return 1;
  for (size_t place = 0; place < one->length; place++)
    if (one->letters[place] != other->letters[place]) return 1;
  return 0;
}
