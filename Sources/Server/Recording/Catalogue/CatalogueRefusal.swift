/// Why a recording was not changed as somebody wished.
enum CatalogueRefusal: Error, Sendable, Hashable {
  case notFound
  /// It is being written.
  case running
  /// It would have to be unprotected first.
  case protected
  /// What is asked for makes no sense in its state, in words.
  case conflict(String)
  /// The disk does not let it happen: what failed, with which file, why.
  case disk(String)
}
