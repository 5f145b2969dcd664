internal import NIOCore

/// `prft` (ISO/IEC 14496-12 §8.16.5): wall clock time of a media time of a track. It precedes the fragment that it
/// refers to.
package struct ProducerReferenceTime: Hashable {
  let track: TrackID
  /// Ticks of the track's timescale.
  let mediaTime: Int64
  let wallTime: WallTime

  /// For a run of a fragment: its earliest presentation time, by the publication's clock.
  init(of run: TrackRun, anchor: WallClockAnchor) {
    track = run.track
    mediaTime = run.earliestPresentationTime
    wallTime = anchor.wallTime(at: MediaTime(ticks: mediaTime, timescale: run.timescale))
  }

  /// Reads a `prft`. Throws for other versions than 1.
  init(_ box: BoxView) throws(BoxError) {
    var fields = BoxFields(box)
    let (version, _) = try fields.versionAndFlags()
    let id = try fields.u32()
    guard version == 1, id > 0 else { throw box.error(.invalid) }
    let time = try fields.u64()
    track = TrackID(id)
    mediaTime = try fields.i64()
    // The 32-bit seconds overflow in 2036. Values before 1968 belong to the next era (RFC 5905 §6).
    let era: Int64 = time >> 63 == 0 ? 1 << 32 : 0
    let seconds = Int64(time >> 32) &+ era &- Self.secondsFrom1900
    let nanoseconds = ((time & 0xFFFF_FFFF) &* 1_000_000_000 &+ 0xFFFF_FFFF) >> 32
    wallTime = WallTime(nanoseconds: seconds &* 1_000_000_000 &+ Int64(nanoseconds))
  }

  /// Size of the box in bytes.
  package static let size = 32

  /// Flag for "a consistent, small offset from the real-time of the experience depicted in the media" (§8.16.5.3).
  /// Media reaches a server later than the camera saw it, by an encoder's and a network's delay. The server cannot know
  /// that delay.
  static let realTime: UInt32 = 24

  /// Seconds from the epoch of NTP, 1900-01-01T00:00:00Z, to 1970 (RFC 5905 §6).
  static let secondsFrom1900: Int64 = 2_208_988_800

  /// The 64-bit timestamp of RFC 5905: seconds since 1900 modulo 2³², and fractions of 2⁻³² seconds.
  var networkTime: UInt64 {
    let (seconds, nanoseconds) = wallTime.nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
    // Before 1970 the remainder is negative. The fraction counts up from the second below.
    let (whole, rest) = nanoseconds < 0 ? (seconds &- 1, nanoseconds &+ 1_000_000_000) : (seconds, nanoseconds)
    let fraction = (UInt64(truncatingIfNeeded: rest) &<< 32) / 1_000_000_000
    return UInt64(truncatingIfNeeded: whole &+ Self.secondsFrom1900) &<< 32 | fraction
  }
}

extension OutputRawSpan {
  /// `prft`, version 1.
  mutating func producerReferenceTime(_ time: ProducerReferenceTime) {
    fullBox("prft", version: 1, flags: ProducerReferenceTime.realTime) {
      $0.u32(time.track.rawValue)
      $0.u64(time.networkTime)
      $0.i64(time.mediaTime)
    }
  }
}
