internal import Base
internal import NIOCore

/// Times of arrival of packets by their number on the whole transport, for the sender's congestion control
/// (draft-holmer-rmcat-transport-wide-cc-extensions-01). Without them browsers stay at 300 kbit/s.
struct ArrivalLog {
  /// Most numbers of one feedback, so that it fits a datagram.
  private static let most: Int64 = 300
  /// Nanoseconds of a tick of a difference, and of the reference time.
  private static let tick: Int64 = 250_000
  private static let reference: Int64 = 64_000_000

  private var counter = SequenceCounter()
  private var arrivals: [Int64: MonotonicTime] = [:]
  /// The first number that was not told.
  private var next: Int64?
  private var count: UInt8 = 0
  private let origin: MonotonicTime

  /// `origin`: times are counted from here.
  init(origin: MonotonicTime) { self.origin = origin }

  var isEmpty: Bool { arrivals.isEmpty }

  mutating func saw(_ number: UInt16, now: MonotonicTime) {
    let number = counter.extend(number)
    guard number >= next ?? .min, arrivals.count < WebRTCLimits.arrivals, arrivals[number] == nil else { return }
    arrivals[number] = now
  }

  /// The next feedback, without its head. Nil if nothing came since the last one.
  mutating func feedback() -> ByteBuffer? {
    guard let last = arrivals.keys.max(), let lowest = arrivals.keys.min() else { return nil }
    // A gap longer than a feedback is not told: the sender sees that it is missing.
    let first = lowest &- (next ?? lowest) < Self.most ? min(next ?? lowest, lowest) : lowest
    let end = min(last, first &+ Self.most &- 1)
    guard let start = (first...end).first(where: { arrivals[$0] != nil }), let firstArrival = arrivals[start] else {
      return nil
    }
    let reference = (firstArrival &- origin) / Self.reference
    var time = origin &+ reference &* Self.reference
    var symbols: [UInt16] = []
    var differences = ByteBuffer()
    for number in first...end {
      guard let arrival = arrivals.removeValue(forKey: number) else {
        symbols.append(0)
        continue
      }
      let ticks = Int64((Double(arrival &- time) / Double(Self.tick)).rounded())
      if let small = UInt8(exactly: ticks) {
        symbols.append(1)
        differences.writeInteger(small)
      } else {
        symbols.append(2)
        differences.writeInteger(Int16(clamping: ticks))
      }
      time = time &+ ticks &* Self.tick
    }
    next = end &+ 1
    var body = ByteBuffer()
    body.writeInteger(UInt16(truncatingIfNeeded: first))
    body.writeInteger(UInt16(clamping: symbols.count))
    body.writeInteger(UInt32(truncatingIfNeeded: reference) << 8 | UInt32(count))
    count &+= 1
    for start in stride(from: 0, to: symbols.count, by: 7) {
      // Two bits each, seven of them.
      var chunk: UInt16 = 0xC000
      for (place, symbol) in symbols[start..<min(start + 7, symbols.count)].enumerated() {
        chunk |= symbol << UInt16(12 - 2 * place)
      }
      body.writeInteger(chunk)
    }
    body.writeImmutableBuffer(differences)
    body.writeRepeatingByte(0, count: (4 - body.readableBytes % 4) % 4)
    return body
  }
}
