package import GRDB

extension DatabaseError {
  /// The file is not a database, or is damaged.
  package var isDamage: Bool { resultCode == .SQLITE_CORRUPT || resultCode == .SQLITE_NOTADB }
}
