#pragma once

/* sqlite3_config takes a variable number of arguments, which Swift cannot call. <sqlite3.h> is left out: what it declares
   would belong to this module as well as to GRDB's. The number is SQLite's. */
extern int sqlite3_config(int option, ...);

enum { weir_sqlite_config_pagecache = 7 };

/* No block of pages in advance. */
static inline int weir_sqlite_allocate_pages_singly(void) {
  return sqlite3_config(weir_sqlite_config_pagecache, (void *)0, 0, 0);
}
