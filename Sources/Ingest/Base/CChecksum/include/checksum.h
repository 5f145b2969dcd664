#ifndef WEIR_CHECKSUM_H
#define WEIR_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/// CRC-32C (Castagnoli, RFC 3720 appendix B.4). Returns the CRC of all bytes so far: those with the CRC `before`, then
/// `length` bytes from `bytes`. `before` is 0 at the beginning. Uses the processor's CRC instruction if it has one.
uint32_t weir_crc32c(uint32_t before, const void *bytes, size_t length);

/// The same with tables, for processors without that instruction.
uint32_t weir_crc32c_tables(uint32_t before, const void *bytes, size_t length);

#endif
