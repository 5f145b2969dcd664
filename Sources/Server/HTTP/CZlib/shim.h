#pragma once
#include <zlib.h>

/* deflateInit2 is a function-like macro; a window of 15 + 16 bits writes a gzip header and trailer. */
static inline int gzip_deflate_init(z_stream *stream, int level) {
  return deflateInit2(stream, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
}
