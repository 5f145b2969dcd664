/// Why a requested change of a recording was refused.
enum CatalogueRefusal: Error, Sendable, Hashable {
  case notFound
  /// It is being written.
  case running
  /// It is protected.
  case protected
  /// The request makes no sense in its present state, as the text explains.
  case conflict(String)
  /// The disk failed: what failed, with which file, why.
  case disk(String)
}
