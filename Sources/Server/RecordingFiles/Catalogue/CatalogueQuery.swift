package import FMP4
package import Publishing

/// A query of the catalogue, one page at a time.
package struct CatalogueQuery: Sendable, Hashable {
  package enum Selection: Sendable, Hashable {
    /// All that are not deleted.
    case kept
    case state(RecordingEntry.State)
    /// Deleted, and can still be restored.
    case deleted
  }

  package enum Order: String, Sendable, Hashable, CaseIterable {
    case newest, oldest, longest, largest
  }

  package var stream: StreamName?
  package var order = Order.newest
  /// Recordings that began then or later.
  package var from: WallTime?
  /// Recordings that began before.
  package var to: WallTime?
  package var selection = Selection.kept
  /// Entries on the page.
  package var limit = standardLimit
  /// The last entry of the page before.
  package var after: CatalogueCursor?

  package init(
    stream: StreamName? = nil, order: Order = .newest, from: WallTime? = nil, to: WallTime? = nil,
    selection: Selection = .kept, limit: Int = standardLimit, after: CatalogueCursor? = nil
  ) {
    (self.stream, self.order, self.from, self.to, self.selection) = (stream, order, from, to, selection)
    (self.limit, self.after) = (limit, after)
  }

  package static let standardLimit = 100
  package static let maximumLimit = 1000
  /// Rows are counted up to this limit: counting a hundred thousand takes longer than reading a page.
  static let countLimit = 10_000
}

/// A position in the list: after this entry. It stays valid when recordings are added or removed.
package struct CatalogueCursor: Sendable, Hashable, CustomStringConvertible {
  var startedAt: WallTime
  var key: RecordingKey
  /// Its seconds or bytes, where the list is ordered by them.
  package var measure: Double?

  init(_ entry: RecordingEntry, by order: CatalogueQuery.Order) {
    startedAt = entry.startedAt
    key = entry.key
    measure =
      switch order {
      case .newest, .oldest: nil
      case .longest: entry.seconds
      case .largest: Double(entry.bytes)
      }
  }

  /// Reads what `description` wrote; nil for any other text.
  package init?(_ text: String) {
    let parts = text.split(separator: "~", omittingEmptySubsequences: false)
    guard parts.count == 3 || parts.count == 4, let startedAt = Int64(parts[0]),
      let name = RecordingName(finished: parts[1] + ".mp4"),
      let stream = StreamName(String(parts[2]))
    else { return nil }
    self.startedAt = WallTime(nanoseconds: startedAt)
    key = RecordingKey(stream: stream, name: name)
    if parts.count == 4 {
      guard let measure = Double(parts[3]), measure.isFinite else { return nil }
      self.measure = measure
    }
  }

  /// Contains only characters that need no escaping in a query (RFC 3986 §2.3).
  package var description: String {
    "\(startedAt.nanoseconds)~\(key.name.stem)~\(key.stream)" + (measure.map { "~\($0)" } ?? "")
  }
}

/// A page of the catalogue.
package struct CataloguePage: Sendable {
  package var entries: [RecordingEntry]
  /// Start of the next page; nil on the last one.
  package var next: CatalogueCursor?
  /// Number of entries on all pages; `CatalogueQuery.countLimit` means that many or more.
  package var total: Int
  /// False while the folder is still being read after the start: more entries may be found.
  package var isComplete: Bool

  package init(entries: [RecordingEntry], next: CatalogueCursor? = nil, total: Int, isComplete: Bool) {
    (self.entries, self.next, self.total, self.isComplete) = (entries, next, total, isComplete)
  }
}
