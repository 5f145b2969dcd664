package import GRDB

extension DatabaseError {
  /// The file is no database any more, or not a whole one.
  package var isDamage: Bool { resultCode == .SQLITE_CORRUPT || resultCode == .SQLITE_NOTADB }
}
