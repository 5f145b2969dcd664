internal import Glibc
package import GRDB

extension DatabaseError {
  /// The file is not a database, or is damaged.
  package var isDamage: Bool { resultCode == .SQLITE_CORRUPT || resultCode == .SQLITE_NOTADB }

  /// Opens a database whose contents may be lost. A damaged one is deleted and made anew. Throws what `open` throws.
  package static func replacingDamaged<Opened>(
    _ path: String, open: (_ path: String) throws -> Opened
  ) throws -> (database: Opened, wasReplaced: Bool) {
    do {
      return (try open(path), false)
    } catch let error as DatabaseError where error.isDamage {
      for ending in ["", "-wal", "-shm", "-journal"] { unlink(path + ending) }
      return (try open(path), true)
    }
  }
}
