internal import Base
internal import FMP4
internal import Logging

/// A publication that the gate has admitted. Passes its events to its sink, and logs its start, changes and end.
package struct AdmittedPublication {
  let stream: StreamName
  package let sink: any MediaSink
  private let publisher: Publisher
  private let software: String
  private var isAnnounced = false
  private var changes = LogThrottle()
  /// Bytes that the sink was told of.
  private var held = 0

  /// `software` is the name that the publisher's software gave on connecting.
  init(_ stream: StreamName, by publisher: Publisher, software: String, sink: any MediaSink) {
    self.stream = stream
    self.publisher = publisher
    self.software = software
    self.sink = sink
  }

  /// Passes an event to the sink; not the last one. Returns a reason if the sink closes the publication.
  ///
  /// - Parameter encoder: current name of the encoder, possibly empty.
  mutating func give(_ event: MediaEvent, encoder: String, now: MonotonicTime) -> EndReason? {
    if case .tracks(let tracks) = event { tell(tracks, encoder, now) }
    guard case .closed(let reason) = sink.receive(event) else { return nil }
    publisher.tellEnd(of: stream, reason)
    return reason
  }

  /// Tells the sink how many bytes the protocol holds. Small changes are not told.
  mutating func hold(_ bytes: Int) {
    guard (bytes &- held).magnitude >= PublicationLimits.heldStep else { return }
    held = bytes
    sink.holds(bytes)
  }

  /// Passes the end to the sink and logs it.
  func end(_ reason: EndReason) {
    _ = sink.receive(.end(reason))
    publisher.tellEnd(of: stream, reason)
  }

  private mutating func tell(_ tracks: [TrackDescription], _ encoder: String, _ now: MonotonicTime) {
    let verb = isAnnounced ? "now" : "publishing"
    isAnnounced = true
    guard let untold = changes.tells(now: now) else { return }
    let what = tracks.map(\.summary).joined(separator: ", ")
    publisher.logger.notice(
      "\(verb) \(what) from \(publisher.remoteAddress) (\(encoder.isEmpty ? software : encoder))\(untold)",
      metadata: publisher.metadata(of: stream))
  }
}
