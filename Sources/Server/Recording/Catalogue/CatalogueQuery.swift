internal import Basics
internal import Ingest

/// What somebody wants to see of the catalogue: newest first, a page at a time.
struct CatalogueQuery: Sendable, Hashable {
  enum Selection: Sendable, Hashable {
    /// All that were not deleted.
    case kept
    case state(RecordingEntry.State)
    /// Deleted, and can still be restored.
    case deleted
  }

  var stream: StreamName?
  /// Nanoseconds since 1970: recordings that began then or later.
  var from: Int64?
  /// Nanoseconds since 1970: recordings that began before.
  var to: Int64?
  var selection = Selection.kept
  /// Of entries on the page.
  var limit = standardLimit
  /// Where the page before ended.
  var after: CatalogueCursor?

  static let standardLimit = 100
  static let maximumLimit = 1000
  /// Nobody counts further: a hundred thousand rows take longer to count than a page takes to read.
  static let countLimit = 10_000
}

/// A place in the list: behind this entry. It stays where it is when recordings come and go.
struct CatalogueCursor: Sendable, Hashable, CustomStringConvertible {
  var startedAt: Int64
  var key: RecordingKey

  init(_ entry: RecordingEntry) {
    startedAt = entry.startedAt
    key = entry.key
  }

  /// Reads what `description` wrote; nil for anything else.
  init?(_ text: String) {
    let parts = text.split(separator: "~", omittingEmptySubsequences: false)
    guard parts.count == 3, let startedAt = Int64(parts[0]), let name = RecordingName(finished: parts[1] + ".mp4"),
      let stream = StreamName(String(parts[2]))
    else { return nil }
    self.startedAt = startedAt
    key = RecordingKey(stream: stream, name: name)
  }

  /// Only characters that a query carries as they are (RFC 3986 §2.3).
  var description: String { "\(startedAt)~\(key.name.stem)~\(key.stream)" }
}

/// A page of the catalogue.
struct CataloguePage: Sendable {
  var entries: [RecordingEntry]
  /// Where the next page begins; nil on the last one.
  var next: CatalogueCursor?
  /// How many the query finds on all pages; `CatalogueQuery.countLimit` stands for that many or more.
  var total: Int
  /// The folder has not been read to its end yet since the start: more may be found.
  var isComplete: Bool
}
