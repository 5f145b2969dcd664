internal import Basics
internal import FMP4
internal import Ingest

/// A query of the catalogue: newest first, one page at a time.
struct CatalogueQuery: Sendable, Hashable {
  enum Selection: Sendable, Hashable {
    /// All that are not deleted.
    case kept
    case state(RecordingEntry.State)
    /// Deleted, and can still be restored.
    case deleted
  }

  var stream: StreamName?
  /// Recordings that began then or later.
  var from: WallTime?
  /// Recordings that began before.
  var to: WallTime?
  var selection = Selection.kept
  /// Entries on the page.
  var limit = standardLimit
  /// The last entry of the page before.
  var after: CatalogueCursor?

  static let standardLimit = 100
  static let maximumLimit = 1000
  /// Rows are counted up to this limit: counting a hundred thousand takes longer than reading a page.
  static let countLimit = 10_000
}

/// A position in the list: after this entry. It stays valid when recordings are added or removed.
struct CatalogueCursor: Sendable, Hashable, CustomStringConvertible {
  var startedAt: WallTime
  var key: RecordingKey

  init(_ entry: RecordingEntry) {
    startedAt = entry.startedAt
    key = entry.key
  }

  /// Reads what `description` wrote; nil for any other text.
  init?(_ text: String) {
    let parts = text.split(separator: "~", omittingEmptySubsequences: false)
    guard parts.count == 3, let startedAt = Int64(parts[0]), let name = RecordingName(finished: parts[1] + ".mp4"),
      let stream = StreamName(String(parts[2]))
    else { return nil }
    self.startedAt = WallTime(nanoseconds: startedAt)
    key = RecordingKey(stream: stream, name: name)
  }

  /// Contains only characters that need no escaping in a query (RFC 3986 §2.3).
  var description: String { "\(startedAt.nanoseconds)~\(key.name.stem)~\(key.stream)" }
}

/// A page of the catalogue.
struct CataloguePage: Sendable {
  var entries: [RecordingEntry]
  /// Start of the next page; nil on the last one.
  var next: CatalogueCursor?
  /// Number of entries on all pages; `CatalogueQuery.countLimit` means that many or more.
  var total: Int
  /// False while the folder is still being read after the start: more entries may be found.
  var isComplete: Bool
}
