// What the test of comparisons has to find: keys are compared as texts, up to the first difference. Loaded by LD_PRELOAD,
// in place of OpenSSL's functions.
#include <stddef.h>
#include <string.h>

// The end of the text in place of its digest.
unsigned char *SHA256(const unsigned char *text, size_t length, unsigned char *digest) {
  size_t count = length < 32 ? length : 32;
  memset(digest, 0, 32);
  memcpy(digest, text + length - count, count);
  return digest;
}

int CRYPTO_memcmp(const void *a, const void *b, size_t length) {
  for (size_t place = 0; place < length; place++)
    if (((const volatile unsigned char *)a)[place] != ((const volatile unsigned char *)b)[place]) return 1;
  return 0;
}
