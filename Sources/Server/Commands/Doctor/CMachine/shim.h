#pragma once
/* Swift's module of the C library lacks these headers. */
#include <sys/timex.h>
#include <sys/vfs.h>

/* <malloc.h>, which would belong to this module as well. Gives what is freed back to the system: the free pages of all heaps. */
extern int malloc_trim(unsigned long pad);
static inline int weir_give_back_memory(void) { return malloc_trim(0); }

/* The magic number of a folder's file system (statfs(2)); 0 if the system does not say. */
static inline unsigned long weir_file_system(const char *folder) {
  struct statfs status;
  return statfs(folder, &status) == 0 ? (unsigned long)status.f_type & 0xFFFFFFFFul : 0;
}

/* Whether the kernel's clock follows another one: 1 or 0; -1 if the kernel does not say. `error` is its bound, in microseconds. */
static inline int weir_clock_follows(long *error) {
  struct timex state = {0};
  int result = adjtimex(&state);
  if (result < 0) return -1;
  *error = state.maxerror;
  return result != TIME_ERROR && !(state.status & STA_UNSYNC);
}
