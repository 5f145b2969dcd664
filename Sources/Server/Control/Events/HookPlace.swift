internal import Publishing

/// Where a hook is in the log.
struct HookPlace: Sendable, Hashable {
  /// Everything up to this event is done, but for the streams of `behind`.
  var through: Int64
  /// Streams that were held up, and the event up to which everything of each is done. Events without a stream stand at nil.
  var behind: [String?: Int64] = [:]

  /// Everything up to this event is done.
  var doneThrough: Int64 { behind.values.min().map { min($0, through) } ?? through }

  /// Seconds between two writes of the place while events are delivered. A long one is written seldom. A crash then repeats up to a
  /// second of deliveries.
  var noteInterval: Int64 { behind.count > 100 ? 1 : 0 }

  /// As the database keeps `behind`: `=7,cam=12`. A name has neither character.
  var text: String {
    behind.map { "\($0.key ?? "")=\($0.value)" }.sorted().joined(separator: ",")
  }

  init(through: Int64, behind: [String?: Int64] = [:]) { (self.through, self.behind) = (through, behind) }

  /// Items that this program cannot have written are left out: their events are taken for done up to `through`.
  init(through: Int64, text: String) {
    self.through = through
    for item in text.split(separator: ",") {
      let parts = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2, let id = Int64(parts[1]), id >= 0 else { continue }
      if parts[0].isEmpty {
        behind[nil as String?] = id
      } else if let name = StreamName(parts[0]) {
        behind[name.description] = id
      }
    }
  }
}
