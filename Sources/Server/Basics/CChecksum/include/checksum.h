#ifndef WEIR_CHECKSUM_H
#define WEIR_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/// CRC-32C (Castagnoli; RFC 3720 appendix B.4) of `length` bytes behind those that `before` is the CRC of; 0 at the
/// beginning. By the processor's own instruction where it has one.
uint32_t weir_crc32c(uint32_t before, const void *bytes, size_t length);

/// The same by tables, for processors without it.
uint32_t weir_crc32c_tables(uint32_t before, const void *bytes, size_t length);

#endif
