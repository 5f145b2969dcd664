internal import Base
internal import FMP4
internal import NIOCore
internal import Publishing

/// A pause of the sender within its connection. What comes behind it is no part of the media before it: it is published as the media
/// of a sender that was lost and came back, behind a discontinuity, from a key frame on, and dated by its arrival.
extension WebRTCPublication {
  /// What comes first behind a pause during which the sender's clock seems to have stood. It waits: a sender that was suspended has
  /// the media of that time still, and sends them at once.
  struct Resumption {
    /// The track by which it is judged, and when its first packet came.
    let track: TrackID
    let at: MonotonicTime
    /// By how much less the timestamps have gone on than time, in nanoseconds: at first, and the least.
    let firstLag: Int64
    var lag: Int64
    var events: [(event: RTPReceiver.Event, track: Negotiation.Track, at: MonotonicTime)] = []
    var byteCount = 0

    var isFull: Bool {
      events.count >= PublicationLimits.doubtfulUnits || byteCount >= PublicationLimits.doubtfulBytes
    }
  }

  /// Nanoseconds by which timestamps may go on less than time over a pause, without being a clock that stood.
  private static let leastLag: Int64 = 1_000_000_000
  /// Nanoseconds that a sender that catches up has caught up by when it is judged, at least.
  private static let leastCatchUp: Int64 = 500_000_000

  /// Takes what a receiver has put together. Behind a pause it may wait.
  mutating func take(
    _ event: RTPReceiver.Event, _ track: Negotiation.Track, _ now: MonotonicTime, to out: inout [PublicationAction]
  ) throws(WireError) {
    guard let (timestamp, size) = event.media else { return try pass(event, track, now, to: &out) }
    if isResuming(now) {
      resumedAt = now
      let lag = lag(track.id, timestamp, now)
      // An encoding that is not on the clock of its picture says nothing: what comes next does.
      if lag == nil, simulcast(of: track.id) != nil { return try pass(event, track, now, to: &out) }
      if let lag, lag >= Self.leastLag {
        resumption = Resumption(track: track.id, at: now, firstLag: lag, lag: lag)
      }
    }
    newestMedia = now
    guard let least = resumption?.lag else { return try pass(event, track, now, to: &out) }
    if resumption?.track == track.id, let lag = lag(track.id, timestamp, now) {
      resumption?.lag = min(least, lag)
    }
    resumption?.events.append((event, track, now))
    resumption?.byteCount &+= size
    if resumption?.isFull == true { try resume(to: &out) }
  }

  /// By how much less the timestamps of a track have gone on than time has, in nanoseconds; nil if that is not known. Encodings of one
  /// picture share a clock.
  private func lag(_ id: TrackID, _ timestamp: UInt32, _ now: MonotonicTime) -> Int64? {
    guard let simulcast = simulcast(of: id).map({ simulcasts[$0] }) else { return clocks.lag(id, timestamp, now) }
    guard let clock = simulcast.members.first, let common = simulcast.clocks.common(id, timestamp) else { return nil }
    return clocks.lag(clock, common, now)
  }

  /// Whether this is the first media behind a pause that says something of it.
  private func isResuming(_ now: MonotonicTime) -> Bool {
    guard resumption == nil, !publication.awaitsStart, let newestMedia else { return false }
    return now &- newestMedia >= WebRTCLimits.longestPause
  }

  /// Judges what waits behind a pause, once there was time enough.
  mutating func tendResumption(_ now: MonotonicTime, to out: inout [PublicationAction]) throws(WireError) {
    if let at = resumption?.at, now &- at >= WebRTCLimits.pauseDoubt { try resume(to: &out) }
  }

  /// Passes on what waits behind a pause. Media that did not catch up is as much later as its sender's clock stood.
  mutating func resume(to out: inout [PublicationAction]) throws(WireError) {
    guard let waiting = resumption.take() else { return }
    if waiting.lag >= Self.leastLag, waiting.firstLag &- waiting.lag < Self.leastCatchUp {
      clocks.advance(by: waiting.lag)
    } else {
      resumedAt = nil
    }
    for (event, track, at) in waiting.events { try pass(event, track, at, to: &out) }
  }

  /// Whether something is left out behind a pause: what precedes the next key frame would be listed before the pause, and after a
  /// loss it cannot be decoded.
  mutating func leavesOut(
    _ event: RTPReceiver.Event, _ track: Negotiation.Track, _ now: MonotonicTime, to out: inout [PublicationAction]
  ) -> Bool {
    guard let since = resumedAt else { return false }
    guard now &- since < Self.audioWait, videos.values.contains(where: \.isConfigured) else {
      resumedAt = nil
      return false
    }
    switch event {
    case .lostFrame: return false
    case .audio(_, let lost):
      audios[track.id]?.next = nil
      for _ in 0...min(lost, 64) { out.append(.lost(.audio)) }
      return true
    case .frame(let frame):
      // Parameter sets may come by themselves.
      if frame.payload.readableBytes == 0 { return false }
      if frame.isKey, isIn(track) {
        resumedAt = nil
        return false
      }
      videos[track.id, default: Video()].isBroken = true
      if isIn(track) { out.append(.lost(.video)) }
      return true
    }
  }

  /// The publisher has ended: what waits counts.
  mutating func finish(to out: inout [PublicationAction]) {
    try? resume(to: &out)
    publication.finish(to: &out)
  }
}

extension RTPReceiver.Event {
  /// The timestamp of a frame or packet, and its bytes; nil for what is missing.
  fileprivate var media: (timestamp: UInt32, size: Int)? {
    switch self {
    case .frame(let frame): (frame.timestamp, frame.payload.readableBytes)
    case .audio(let packet, _): (packet.timestamp, packet.payload.readableBytes)
    case .lostFrame: nil
    }
  }
}
