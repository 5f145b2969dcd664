internal import FMP4
internal import Publishing

/// A sink that receives a local source from its first event on, or joins while the source runs. A value.
struct LateJoiningSink: Sendable {
  let sink: any MediaSink
  /// Nil where it begins with the first event.
  private var start: LateStart?

  /// Begins with the first event.
  static func atFirst(_ sink: any MediaSink) -> LateJoiningSink { LateJoiningSink(sink: sink, start: nil) }

  /// Begins with the next key frame. `tracks` and `anchor` are the source's.
  static func atKeyFrame(
    _ sink: any MediaSink, _ tracks: [TrackDescription], _ anchor: WallClockAnchor?
  ) -> LateJoiningSink {
    LateJoiningSink(sink: sink, start: LateStart(tracks: tracks, anchor: anchor))
  }

  /// The sink receives events already; false while it waits for a key frame.
  var hasBegun: Bool { start?.hasBegun ?? true }

  /// Passes an event of the source to the sink if the sink has begun or begins with it.
  mutating func give(_ event: MediaEvent) -> SinkVerdict {
    guard start != nil else { return sink.receive(event) }
    for event in start?.take(event) ?? [] {
      let verdict = sink.receive(event)
      guard verdict == .accepted else { return verdict }
    }
    return .accepted
  }
}
