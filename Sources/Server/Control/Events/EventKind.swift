/// What happened. The words are those of the API, of hooks and of the table of events.
package enum EventKind: String, Sendable, Hashable, CaseIterable {
  /// A publisher was admitted, and the stream begins anew.
  case streamStarted = "stream.started"
  /// The publisher was lost or replaced; viewers wait.
  case streamInterrupted = "stream.interrupted"
  /// A publisher continues the stream.
  case streamResumed = "stream.resumed"
  /// A fallback takes the publisher's place, or the publisher is back on air.
  case streamSwitched = "stream.switched"
  case streamEnded = "stream.ended"
  /// Something about the publication is bad for viewers.
  case streamWarned = "stream.warned"
  /// A cue of SCTE 35 came with the publication.
  case streamCue = "stream.cue"
  case publisherRefused = "publisher.refused"
  case recordingStarted = "recording.started"
  /// A recording gets its final name.
  case recordingStored = "recording.stored"
  /// A recording ended early, or could not be finished.
  case recordingFailed = "recording.failed"
  /// The same as stored, of a file that an earlier process left unfinished.
  case recordingSalvaged = "recording.salvaged"
  /// Deleted by a client or by retention, or cancelled.
  case recordingDeleted = "recording.deleted"
  /// Recording stops, because less space is free than is to be kept free.
  case diskLow = "disk.low"
  case viewersRefused = "viewers.refused"
  case settingsReloaded = "settings.reloaded"
  /// A device of one of the server's own sources is missing.
  case sourceAway = "source.away"
  case sourceBack = "source.back"
  /// Wrong credentials over HTTP.
  case accessRefused = "access.refused"
  /// The first key that allows to publish is there: publishers need one from now on.
  case accessClosed = "access.closed"

  /// A peer can cause as many as it likes.
  var isLimited: Bool {
    switch self {
    case .publisherRefused, .viewersRefused, .accessRefused, .streamWarned, .streamCue: true
    default: false
    }
  }

  /// How many of a limited kind become events in a span: of one subject, and of all.
  var burst: (ofSubject: Int, ofAll: Int) {
    switch self {
    case .streamCue: (12, 60)
    default: (5, 30)
    }
  }

  /// The state of a stream changed.
  var isOfLife: Bool {
    switch self {
    case .streamStarted, .streamInterrupted, .streamResumed, .streamEnded: true
    default: false
    }
  }
}

/// Some kinds, as texts name them: `recording.stored`, `recording.*`, `*`.
package struct EventKinds: Sendable, Hashable {
  private(set) var all: Set<EventKind> = []

  package init() {}

  /// False for a text that names no kind.
  package mutating func add(_ text: String) -> Bool {
    let added = EventKind.allCases.filter { kind in
      text == "*" || kind.rawValue == text
        || (text.hasSuffix(".*") && kind.rawValue.hasPrefix(text.dropLast()) && text.utf8.count > 2)
    }
    all.formUnion(added)
    return !added.isEmpty
  }

  package static let words = EventKind.allCases.map(\.rawValue)
}
