internal import CSQLite

/// Memory of SQLite, for all databases of the process.
package enum SQLiteMemory {
  /// Memory for a page is taken when the page is read. Otherwise each connection begins with twenty (85 KB), and weir's
  /// databases are small: this is a twentieth of what an idle server needs. Called before the first database is opened.
  package static func allocatePagesSingly() {
    _ = weir_sqlite_allocate_pages_singly()
  }
}
