/// Why a requested change of a recording was refused.
package enum CatalogueRefusal: Error, Sendable, Hashable {
  case notFound
  /// It is being written.
  case running
  /// It is protected.
  case protected
  /// It is to be restored, and is not deleted.
  case notDeleted
  /// Its file is not an ordinary movie yet.
  case unfinished
  /// The disk failed: what failed, with which file, why.
  case disk(String)
}
