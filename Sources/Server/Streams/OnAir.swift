internal import Base
internal import FMP4
internal import Publishing

/// What viewers of a stream get.
package enum Input: String, Sendable, Hashable, CaseIterable {
  case publisher, fallback
}

/// A stream's own publication, which takes the place of a publisher that is away.
struct StandIn: Sendable {
  let number: Int
  let fallback: Fallback
  let since: MonotonicTime
  var run: (any FallbackRun)?
  /// Viewers get its media.
  var isOnAir = false
}

/// Whose media viewers get: the publisher's, or those of the stand-in.
struct OnAir: Sendable {
  var standIn: StandIn?
  /// Of the publisher, where it has joined or come back while the stand-in was on air.
  var late: LateStart?
  /// The newest tracks and clock of the publisher.
  var tracks: [TrackDescription] = []
  var anchor: WallClockAnchor?
  /// Other streams whose fallback this one is.
  var relays: [ObjectIdentifier: any SampleFollower] = [:]
  /// Why the last stand-in ended by itself.
  var trouble: String?
  /// No stand-in begins before.
  var notBefore: MonotonicTime?
  private var count = 0

  var isStoodIn: Bool { standIn?.isOnAir == true }

  mutating func nextNumber() -> Int {
    count += 1
    return count
  }

  /// Keeps what a publisher's event says of its tracks and times.
  mutating func note(_ event: MediaEvent) {
    switch event {
    case .tracks(let tracks): self.tracks = tracks
    case .clock(let anchor): self.anchor = anchor
    case .sample, .progress, .discontinuity, .end: break
    }
  }

  /// Another publisher begins.
  mutating func beginPublication() {
    (tracks, anchor) = ([], nil)
    late = isStoodIn ? LateStart() : nil
  }
}
