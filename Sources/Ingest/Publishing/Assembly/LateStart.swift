package import FMP4

/// The events of a publication for somebody who joins while it runs, as a publication of their own: it begins with a key frame at
/// time 0. A value.
package struct LateStart: Sendable {
  /// Where the publication begins, by its own times; nil until the key frame.
  private var start: MediaTime?
  private var tracks: [TrackDescription]
  private var anchor: WallClockAnchor?

  /// Begins with the next key frame. `tracks` and `anchor` are the newest of the publication; empty and nil before its own.
  package init(tracks: [TrackDescription] = [], anchor: WallClockAnchor? = nil) {
    (self.tracks, self.anchor) = (tracks, anchor)
  }

  /// The key frame has come.
  package var hasBegun: Bool { start != nil }

  /// What an event of the publication is for who joined; nothing before the key frame, but for the end.
  package mutating func take(_ event: MediaEvent) -> [MediaEvent] {
    switch event {
    case .tracks(let tracks): self.tracks = tracks
    case .clock(let anchor): self.anchor = anchor
    case .sample, .progress, .discontinuity, .end: break
    }
    if let start { return pass(event, start) }
    if case .end = event { return [event] }
    guard case .sample(let sample) = event, let start = start(with: sample) else { return [] }
    self.start = start
    var events: [MediaEvent] = []
    if var clock = anchor {
      (clock.mediaTime, clock.wallTime) = (.zero, clock.wallTime(at: start))
      events.append(.clock(clock))
    }
    return events + [.tracks(tracks)] + pass(event, start)
  }

  /// The start of a publication that can begin with this sample: a key frame, or audio if there is no video.
  private func start(with sample: Sample) -> MediaTime? {
    guard let track = tracks.first(where: { $0.id == sample.track }), sample.isSync,
      track.kind == .video || !tracks.contains(where: { $0.kind == .video })
    else { return nil }
    return MediaTime(ticks: sample.decodeTime, timescale: track.timescale)
  }

  private func pass(_ event: MediaEvent, _ start: MediaTime) -> [MediaEvent] {
    switch event {
    case .sample(var sample):
      let timescale = tracks.first { $0.id == sample.track }?.timescale ?? start.timescale
      sample.decodeTime &-= start.rescaled(to: timescale)
      // Audio from before the key frame is left out.
      return sample.decodeTime < 0 ? [] : [.sample(sample)]
    case .progress(let time): return [.progress(time - start)]
    case .clock(let anchor): return [.clock(Self.shift(anchor, by: start))]
    case .tracks, .discontinuity, .end: return [event]
    }
  }

  private static func shift(_ anchor: WallClockAnchor, by start: MediaTime) -> WallClockAnchor {
    var anchor = anchor
    anchor.mediaTime = anchor.mediaTime - start
    return anchor
  }
}
