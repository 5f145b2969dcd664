#pragma once
/* What the C library declares is Glibc's (CLibAV/shim.h says why). */
#pragma clang module import SwiftGlibc
#include <srt/srt.h>
#include <srt/access_control.h>

/* The C library declares their addresses as unions, which Swift takes for those of another module. */
static inline int weir_bind(int socket, const void *address, unsigned int size) {
  return bind(socket, (const struct sockaddr *)address, size);
}
static inline int weir_socket_name(int socket, void *address, unsigned int *size) {
  return getsockname(socket, (struct sockaddr *)address, size);
}
