#ifndef WEIR_LIBAV_CALLS_H
#define WEIR_LIBAV_CALLS_H

/// Loads libav, if that was not done yet. A process that may open no files later calls it first; any other need not, since the
/// first call of a function of libav does so. Ends the process with a line on standard error where libav is missing.
void weir_load_libav(void);

/// Loads libav, if that was not done yet. Returns why it cannot be used, in one line; NULL if it can.
const char *weir_libav_failure(void);

#endif
