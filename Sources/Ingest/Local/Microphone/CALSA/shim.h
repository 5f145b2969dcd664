#pragma once
/* What the C library declares is Glibc's: without this, its headers would be read again here, and the compiler would take
   either module for the one that timespec and its like belong to. */
#pragma clang module import SwiftGlibc
#include <alsa/asoundlib.h>

/* The library's own lines would bypass our log; what fails is told by its return code. */
static void weir_alsa_say_nothing(const char *file, int line, const char *function, int err, const char *fmt, ...) {
  (void)file; (void)line; (void)function; (void)err; (void)fmt;
}
static inline void weir_alsa_quiet(void) { snd_lib_error_set_handler(weir_alsa_say_nothing); }
