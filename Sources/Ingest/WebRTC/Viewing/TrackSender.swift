internal import Base
internal import NIOCore

/// What one viewer has of a track, and what it gets next: a place in the track's `PacketLog`, and its own numbers of packets.
struct TrackSender {
  /// A packet for the viewer.
  struct Outgoing: Equatable {
    /// In the log.
    var number: Int
    var sequence: UInt16
    var timestamp: UInt32
  }

  /// Frames of the past that the viewer gets all at once, so that it is live: their times lie close together, in ticks.
  private struct FastForward {
    var firstFrame: Int
    var firstTimestamp: UInt32
    var step: UInt32
    /// The first packet that keeps its time.
    var end: Int
  }

  private(set) var payloadType: UInt8
  let source: UInt32
  /// Decoding begins with a key frame.
  let needsKeyFrame: Bool
  private(set) var packets: UInt32 = 0
  private(set) var bytes: UInt32 = 0
  /// The next packet; nil before the first one.
  private(set) var next: Int?
  /// Nothing before the next key frame is of use.
  private(set) var awaitsKeyFrame: Bool
  private var sequence = UInt16.random(in: .min ... .max)
  private var lastTimestamp: UInt32?
  private var begunAt = MonotonicTime.min
  /// By so many ticks its times are later than those of the track: it had another one before, whose frames came earlier.
  private(set) var delay: UInt32 = 0
  private var hasMoved = false
  private var fastForward: FastForward?
  /// What was sent under a number, by its lowest bits.
  private var sent: [Outgoing?]

  /// A millisecond, and the shortest distance of frames that is counted on, in ticks of 90 kHz.
  private static let (closest, usual): (UInt32, UInt32) = (90, 1500)
  /// What a viewer gets of the past may take so long, in nanoseconds.
  private static let catchUp: Int64 = 4_000_000_000
  /// More frames than this are not sent at once.
  static let mostFrames = 900

  init(payloadType: UInt8, source: UInt32, needsKeyFrame: Bool) {
    (self.payloadType, self.source, self.needsKeyFrame) = (payloadType, source, needsKeyFrame)
    awaitsKeyFrame = needsKeyFrame
    sent = needsKeyFrame ? [Outgoing?](repeating: nil, count: WebRTCLimits.repeatablePackets) : []
  }

  /// Goes to the newest key frame that is kept, or to the next one. Tracks without key frames go to their newest packet.
  mutating func begin(_ log: PacketLog, now: MonotonicTime) {
    (fastForward, begunAt) = (nil, now)
    guard needsKeyFrame, let key = log.keyFrame, let newest = log.newest, log[key] != nil,
      log.frames(from: key) <= Self.mostFrames
    else {
      (next, awaitsKeyFrame) = (log.end, needsKeyFrame)
      return
    }
    (next, awaitsKeyFrame) = (key, false)
    arrive(before: newest.timestamp)
    let count = UInt32(clamping: log.frames(from: key))
    guard count > 1 || lastTimestamp != nil else { return }
    // The newest frame has its own time, unless that was used up.
    var step = Self.closest
    var first = newest.timestamp &+ delay &- (count - 1) &* step
    if let last = lastTimestamp, Int32(bitPattern: first &- last) <= 0 {
      step = max(1, min(step, Self.usual / (count + 1)))
      first = last &+ step
    }
    fastForward = FastForward(
      firstFrame: log[key]?.frame ?? 0, firstTimestamp: first, step: step, end: log.end)
  }

  /// Goes over to another track, whose packets have numbers of their own. `begin` says where.
  mutating func move(to payloadType: UInt8) {
    self.payloadType = payloadType
    (next, awaitsKeyFrame, fastForward, hasMoved) = (nil, needsKeyFrame, nil, true)
    sent = [Outgoing?](repeating: nil, count: sent.count)
  }

  /// Goes on with a key frame behind what it would get next.
  mutating func skip(_ log: PacketLog, now: MonotonicTime) {
    if let key = log.keyFrame, let next, key > next { return begin(log, now: now) }
    (next, awaitsKeyFrame, fastForward, begunAt) = (log.end, needsKeyFrame, nil, now)
  }

  /// After a move: no time is earlier than one that the viewer has had.
  private mutating func arrive(before timestamp: UInt32) {
    guard hasMoved else { return }
    hasMoved = false
    let missing = lastTimestamp.map { Int32(bitPattern: $0 &+ Self.usual &- timestamp) } ?? 0
    delay = UInt32(clamping: max(0, missing))
  }

  /// How long the next packet has waited, in nanoseconds; 0 if there is none.
  func lag(_ log: PacketLog, now: MonotonicTime) -> Int64 {
    guard let next, let packet = log[next] else { return 0 }
    let isPast = fastForward.map { next < $0.end } ?? false
    return max(0, now &- max(packet.arrived, begunAt) &- (isPast ? Self.catchUp : 0))
  }

  /// Packets that have not been sent.
  func hasMore(_ log: PacketLog) -> Bool { next.map { $0 < log.end } ?? false }

  /// What it would get next was forgotten.
  func hasLost(_ log: PacketLog) -> Bool { next.map { $0 < log.start } ?? false }

  /// The next packet, and passes over what leads nowhere. Nil if there is none.
  mutating func take(_ log: PacketLog) -> (packet: PacketLog.Packet, as: Outgoing)? {
    guard var number = next else { return nil }
    if awaitsKeyFrame {
      guard let key = log.keyFrame, key >= number else {
        next = log.end
        return nil
      }
      (number, awaitsKeyFrame) = (key, false)
    }
    guard let packet = log[number] else { return nil }
    arrive(before: packet.timestamp)
    let outgoing = Outgoing(number: number, sequence: sequence, timestamp: timestamp(of: packet, number))
    next = number + 1
    sequence &+= 1
    packets &+= 1
    bytes &+= UInt32(clamping: packet.piece.byteCount)
    lastTimestamp = outgoing.timestamp
    if !sent.isEmpty { sent[Int(outgoing.sequence) % sent.count] = outgoing }
    return (packet, outgoing)
  }

  private func timestamp(of packet: PacketLog.Packet, _ number: Int) -> UInt32 {
    guard let fastForward, number < fastForward.end else { return packet.timestamp &+ delay }
    return fastForward.firstTimestamp
      &+ UInt32(truncatingIfNeeded: packet.frame &- fastForward.firstFrame) &* fastForward.step
  }

  /// A packet that was sent under this number. Nil if it is not kept any more.
  func again(_ sequence: UInt16, _ log: PacketLog) -> (packet: PacketLog.Packet, as: Outgoing)? {
    guard !sent.isEmpty, let outgoing = sent[Int(sequence) % sent.count], outgoing.sequence == sequence,
      let packet = log[outgoing.number]
    else { return nil }
    return (packet, outgoing)
  }
}

/// Bytes that may be sent by now: so many a second, and so many at once.
struct ByteAllowance {
  private(set) var bytes: Int64
  private var at: MonotonicTime

  init(_ burst: Int64, now: MonotonicTime) { (bytes, at) = (burst, now) }

  /// - Parameter rate: in bytes per second.
  mutating func grow(_ rate: Int64, burst: Int64, now: MonotonicTime) {
    let passed = max(0, min(now &- at, 1_000_000_000))
    at = now
    bytes = min(burst, bytes &+ max(0, min(rate, 1 << 32)) &* passed / 1_000_000_000)
  }

  mutating func take(_ count: Int) { bytes &-= Int64(clamping: count) }
}
