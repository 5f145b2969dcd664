#include "checksum.h"

#include <string.h>

// In C, because Swift cannot emit a single processor instruction. Everything else about checksums is in Swift.
//
// Slicing by 8: `tables[n][b]` is the CRC of byte `b` and `n` zero bytes. So eight lookups take eight bytes.

static uint32_t tables[8][256];

// 0x82F63B78 is the polynomial of CRC-32C, bit-reversed.

__attribute__((constructor)) static void fill_tables(void) {
  for (uint32_t i = 0; i < 256; i++) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; bit++) crc = (crc >> 1) ^ (crc & 1 ? 0x82F63B78u : 0);
    tables[0][i] = crc;
  }
  for (int table = 1; table < 8; table++) {
    for (uint32_t i = 0; i < 256; i++) {
      uint32_t crc = tables[table - 1][i];
      tables[table][i] = (crc >> 8) ^ tables[0][crc & 0xFF];
    }
  }
}

uint32_t weir_crc32c_tables(uint32_t before, const void *bytes, size_t length) {
  const uint8_t *at = bytes;
  uint32_t crc = ~before;
  for (; length >= 8; length -= 8, at += 8) {
    uint32_t low = crc ^ ((uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24);
    crc = tables[7][low & 0xFF] ^ tables[6][low >> 8 & 0xFF] ^ tables[5][low >> 16 & 0xFF] ^ tables[4][low >> 24]
        ^ tables[3][at[4]] ^ tables[2][at[5]] ^ tables[1][at[6]] ^ tables[0][at[7]];
  }
  for (; length > 0; length--, at++) crc = (crc >> 8) ^ tables[0][(crc ^ *at) & 0xFF];
  return ~crc;
}

#if defined(__x86_64__)

__attribute__((target("sse4.2")))
static uint32_t by_instruction(uint32_t before, const void *bytes, size_t length) {
  const uint8_t *at = bytes;
  uint64_t crc = ~before;
  for (; length >= 8; length -= 8, at += 8) {
    uint64_t word;
    memcpy(&word, at, sizeof word);
    crc = __builtin_ia32_crc32di(crc, word);
  }
  for (; length > 0; length--, at++) crc = __builtin_ia32_crc32qi((uint32_t)crc, *at);
  return ~(uint32_t)crc;
}

static int has_instruction(void) { return __builtin_cpu_supports("sse4.2"); }

#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)

static uint32_t by_instruction(uint32_t before, const void *bytes, size_t length) {
  const uint8_t *at = bytes;
  uint32_t crc = ~before;
  for (; length >= 8; length -= 8, at += 8) {
    uint64_t word;
    memcpy(&word, at, sizeof word);
    crc = __builtin_arm_crc32cd(crc, word);
  }
  for (; length > 0; length--, at++) crc = __builtin_arm_crc32cb(crc, *at);
  return ~crc;
}

static int has_instruction(void) { return 1; }

#else

static uint32_t by_instruction(uint32_t before, const void *bytes, size_t length) {
  return weir_crc32c_tables(before, bytes, length);
}

static int has_instruction(void) { return 0; }

#endif

uint32_t weir_crc32c(uint32_t before, const void *bytes, size_t length) {
  return has_instruction() ? by_instruction(before, bytes, length) : weir_crc32c_tables(before, bytes, length);
}
