internal import FMP4
internal import Ingest

/// A sink that is let in on what one of the server's own sources gives: from its first event on, or while it runs. In the
/// latter case it gets a publication of its own, which begins with a key frame at time 0. A value.
struct LateJoiningSink: Sendable {
  private enum Beginning {
    /// With the source's own.
    case first
    /// With the next key frame.
    case awaited
    /// What lies before this time is left out, and it is 0 to the sink.
    case at(MediaTime)
  }

  let sink: any MediaSink
  private var beginning: Beginning

  /// From the first event on.
  static func atFirst(_ sink: any MediaSink) -> LateJoiningSink { LateJoiningSink(sink: sink, beginning: .first) }

  /// From the next key frame on.
  static func atKeyFrame(_ sink: any MediaSink) -> LateJoiningSink { LateJoiningSink(sink: sink, beginning: .awaited) }

  /// It has got something.
  var hasBegun: Bool {
    if case .awaited = beginning { return false }
    return true
  }

  /// Gives it an event of the source, if it is for it. `tracks` and `anchor` are the source's.
  mutating func give(_ event: MediaEvent, _ tracks: [TrackDescription], _ anchor: WallClockAnchor?) -> SinkVerdict {
    switch beginning {
    case .first: return sink.receive(event)
    case .at(let start): return pass(event, start, tracks)
    case .awaited:
      if case .end = event { return sink.receive(event) }
      guard case .sample(let sample) = event, let start = Self.start(with: sample, tracks) else { return .accepted }
      beginning = .at(start)
      if let anchor {
        let wall = anchor.wallNanoseconds(at: start)
        _ = sink.receive(.clock(WallClockAnchor(mediaTime: .zero, wallNanoseconds: wall)))
      }
      _ = sink.receive(.tracks(tracks))
      return pass(event, start, tracks)
    }
  }

  /// Where a publication begins that can begin with this sample: a key frame, or audio where there is no picture.
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
      // Audio of before the picture with which it began.
      return sample.decodeTime < 0 ? .accepted : sink.receive(.sample(sample))
    case .progress(let time): return sink.receive(.progress(time - start))
    case .clock(let anchor):
      let time = anchor.mediaTime - start
      return sink.receive(.clock(WallClockAnchor(mediaTime: time, wallNanoseconds: anchor.wallNanoseconds)))
    case .tracks, .discontinuity, .end: return sink.receive(event)
    }
  }
}
