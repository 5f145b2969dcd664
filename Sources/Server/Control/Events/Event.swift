internal import Base
internal import FMP4

/// Something that happened, with its place in the order of all events.
package struct Event: Sendable, Hashable {
  /// Greater than that of each earlier event, also of an earlier process.
  package var id: Int64
  package var kind: EventKind
  /// The name of the stream; nil where none is concerned.
  var stream: String?
  /// Who caused it: an address, or nil for the server itself.
  var who: String?
  var at: WallTime
  /// An object of JSON: what the API tells of the subject.
  var data: String
  /// Equal for two reports of the same thing, of which only the first becomes an event.
  var key: String?
  /// The epoch of the stream, where its state changed.
  var epoch: String?
  /// The file of a recording, below the folder of recordings.
  var subject: String?

  /// The most bytes of `data`. Longer data is left out.
  static let longestData = 4096

  /// The event as the API and hooks give it.
  package var json: String {
    let who = who.map(LogText.json) ?? "null"
    let stream = stream.map(LogText.json) ?? "null"
    return #"{"id":\#(id),"kind":"\#(kind.rawValue)","stream":\#(stream),"who":\#(who),"#
      + #""at":"\#(UTCText(at).internet)","data":\#(data)}"#
  }

  /// About the bytes that it takes in memory.
  var bytes: Int { 160 + data.utf8.count + (stream?.utf8.count ?? 0) + (who?.utf8.count ?? 0) + (key?.utf8.count ?? 0) }
}

/// Which events are wanted.
package struct EventFilter: Sendable {
  /// Nil for all.
  package var kinds: EventKinds?
  /// Whether events of a stream are wanted, and those of none; nil for all.
  package var streams: (@Sendable (_ stream: String?) -> Bool)?

  package init(kinds: EventKinds? = nil, streams: (@Sendable (_ stream: String?) -> Bool)? = nil) {
    (self.kinds, self.streams) = (kinds, streams)
  }

  func takes(_ event: Event) -> Bool {
    (kinds?.all.contains(event.kind) ?? true) && (streams?(event.stream) ?? true)
  }
}
