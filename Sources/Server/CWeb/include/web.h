#pragma once
#include <stddef.h>

/// One file of web/, embedded in the binary.
typedef struct {
  const char *path;
  const unsigned char *bytes;
  size_t length;
} weir_web_file;

/// The embedded files; `weir_web_file_count` of them.
extern const weir_web_file weir_web_files[];
extern const size_t weir_web_file_count;

/// The file of that index; NULL beyond the last. Swift cannot see an array of unknown length.
static inline const weir_web_file *weir_web_file_at(size_t index) {
  return index < weir_web_file_count ? &weir_web_files[index] : 0;
}
