internal import Base
internal import FMP4
internal import NIOCore

/// A video of a stream, or its audio, as packets. Used on the event loop of its relay.
final class RelayTrack {
  private(set) var description: TrackDescription
  /// Nil if viewers do not take the codec.
  private var packetizer: (any RTPPacketizer)?
  private(set) var log = PacketLog()
  /// Presentation time of the newest sample, in ticks. Nil after a break.
  private var lastShown: Int64?
  /// Its frames are shown in another order than they are decoded (B-frames): viewers cannot get it.
  private(set) var isReordered = false
  private var rate = MediaRate()
  private let begunAt: MonotonicTime
  /// When its newest sample came. Its packets may be forgotten since.
  private var arrivedAt: MonotonicTime?
  /// When it began, or came again after it had stopped.
  private var resumedAt: MonotonicTime

  /// Media that stayed away for so long has stopped, and media that came so lately has not, in nanoseconds.
  private static let (stopped, fresh): (Int64, Int64) = (4_000_000_000, 1_000_000_000)
  /// After that its viewers are ended, where there is nothing else for them.
  private static let gone: Int64 = 10_000_000_000

  init(_ description: TrackDescription, now: MonotonicTime) {
    (self.description, begunAt, resumedAt) = (description, now, now)
    packetizer = RTPCodec.packetizer(description.codec)
  }

  var id: TrackID { description.id }
  var coding: CodecID { description.codec.id }
  var kind: MediaKind { description.kind }
  /// Viewers can get it.
  var isSent: Bool { packetizer != nil && !isReordered }
  /// Bytes per second, as they come.
  var bytesPerSecond: Int64 { rate.bytesPerSecond }

  func hasStopped(_ now: MonotonicTime) -> Bool { silence(now) >= Self.stopped }
  func isGone(_ now: MonotonicTime) -> Bool { silence(now) >= Self.gone }
  /// It comes, and has come long enough that what is made of it should come, too.
  func hasGoneOn(_ now: MonotonicTime) -> Bool { isFresh(now) && now &- resumedAt >= Self.gone }
  func isFresh(_ now: MonotonicTime) -> Bool { arrivedAt.map { now &- $0 <= Self.fresh } ?? false }
  private func silence(_ now: MonotonicTime) -> Int64 { now &- (arrivedAt ?? begunAt) }

  /// The same track, with other parameters.
  func use(_ description: TrackDescription) {
    guard self.description != description else { return }
    self.description = description
    packetizer = RTPCodec.packetizer(description.codec)
    lastShown = nil
  }

  /// The next sample may be earlier, and of another publisher.
  func breaks() { (lastShown, isReordered) = (nil, false) }

  /// Adds a sample to the packets. `timestamp` is that of its presentation.
  func add(_ sample: Sample, at timestamp: UInt32, now: MonotonicTime) {
    if hasStopped(now) { resumedAt = now }
    arrivedAt = now
    let shown = sample.presentationTime
    if kind == .video, let last = lastShown, shown < last { isReordered = true }
    lastShown = shown
    // Viewers would show it behind what follows it.
    guard isSent, let packetizer else { return }
    var pieces: [RTPPiece] = []
    packetizer.pieces(of: sample.payload, isSync: sample.isSync, to: &pieces)
    rate.add(sample.payload.readableBytes)
    log.append(pieces, at: timestamp, isSync: sample.isSync && kind == .video, now: now)
  }

  func tick(_ now: MonotonicTime) { rate.tick(now) }
  func trim(to limit: Int, now: MonotonicTime) { log.trim(to: limit, now: now) }
  /// Some samples were lost on the way here.
  func clear() { log.clear() }
}

/// How many bytes of media come in a second.
struct MediaRate {
  private(set) var bytesPerSecond: Int64 = 0
  private var bytes: Int64 = 0
  private var since: MonotonicTime?

  mutating func add(_ count: Int) { bytes &+= Int64(clamping: count) }

  mutating func tick(_ now: MonotonicTime) {
    guard let begun = since else {
      (since, bytes) = (now, 0)
      return
    }
    let passed = now &- begun
    guard passed >= 1_000_000_000 else { return }
    let measured = bytes / max(1, passed / 1_000_000) * 1000
    bytesPerSecond = bytesPerSecond == 0 ? measured : (3 * bytesPerSecond + measured) / 4
    (since, bytes) = (now, 0)
  }
}
