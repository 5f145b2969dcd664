internal import FMP4
internal import Publishing

/// A sink that receives a local source from its first event on, or joins while the source runs. In the second case it receives a
/// publication of its own, which begins with a key frame at time 0. A value.
struct LateJoiningSink: Sendable {
  private enum Beginning {
    /// With the source's first event.
    case first
    /// With the next key frame.
    case awaited
    /// At this time, which is 0 for the sink; earlier samples are left out.
    case at(MediaTime)
  }

  let sink: any MediaSink
  private var beginning: Beginning

  /// Begins with the first event.
  static func atFirst(_ sink: any MediaSink) -> LateJoiningSink { LateJoiningSink(sink: sink, beginning: .first) }

  /// Begins with the next key frame.
  static func atKeyFrame(_ sink: any MediaSink) -> LateJoiningSink { LateJoiningSink(sink: sink, beginning: .awaited) }

  /// The sink receives events already; false while it waits for a key frame.
  var hasBegun: Bool {
    if case .awaited = beginning { return false }
    return true
  }

  /// Passes an event of the source to the sink if the sink has begun or begins with it. `tracks` and `anchor` are the source's.
  mutating func give(_ event: MediaEvent, _ tracks: [TrackDescription], _ anchor: WallClockAnchor?) -> SinkVerdict {
    switch beginning {
    case .first: return sink.receive(event)
    case .at(let start): return pass(event, start, tracks)
    case .awaited:
      if case .end = event { return sink.receive(event) }
      guard case .sample(let sample) = event, let start = Self.start(with: sample, tracks) else { return .accepted }
      beginning = .at(start)
      if let anchor {
        let wall = anchor.wallTime(at: start)
        _ = sink.receive(.clock(WallClockAnchor(mediaTime: .zero, wallTime: wall)))
      }
      _ = sink.receive(.tracks(tracks))
      return pass(event, start, tracks)
    }
  }

  /// The start of a publication that can begin with this sample: a key frame, or audio if there is no video.
  private static func start(with sample: Sample, _ tracks: [TrackDescription]) -> MediaTime? {
    guard let track = tracks.first(where: { $0.id == sample.track }), sample.isSync,
      track.kind == .video || !tracks.contains(where: { $0.kind == .video })
    else { return nil }
    return MediaTime(ticks: sample.decodeTime, timescale: track.timescale)
  }

  private func pass(_ event: MediaEvent, _ start: MediaTime, _ tracks: [TrackDescription]) -> SinkVerdict {
    switch event {
    case .sample(var sample):
      let timescale = tracks.first { $0.id == sample.track }?.timescale ?? start.timescale
      sample.decodeTime &-= start.rescaled(to: timescale)
      // Audio from before the first key frame is left out.
      return sample.decodeTime < 0 ? .accepted : sink.receive(.sample(sample))
    case .progress(let time): return sink.receive(.progress(time - start))
    case .clock(let anchor):
      let time = anchor.mediaTime - start
      return sink.receive(.clock(WallClockAnchor(mediaTime: time, wallTime: anchor.wallTime)))
    case .tracks, .discontinuity, .end: return sink.receive(event)
    }
  }
}
