internal import Base
internal import NIOCore

/// Puts the packets of one sender in order, and waits for missing ones for a while.
struct ReorderWindow {
  enum Step {
    case packet(RTPPacket)
    /// So many packets did not come.
    case gap(Int)
  }

  private struct Request {
    var asked: Int
    var next: MonotonicTime
  }

  /// Nanoseconds between two requests for a packet, at least, and most requests.
  private static let pause: Int64 = 60_000_000
  private static let mostRequests = 6
  /// A step by more than this begins a new row of numbers (RFC 3550 A.1).
  private static let longestStep: Int64 = 3000
  /// Packets that come one after the other from behind the row while nothing else came for so long, in nanoseconds: the row went
  /// on too far, and its numbers are theirs. Packets that were asked for come beside new ones.
  private static let (mostBehind, standstill): (Int, Int64) = (3, 500_000_000)

  /// Nanoseconds, at least.
  private let leastPatience: Int64
  /// How soon packets come again.
  private var answers = AnswerTime()
  private var counter = SequenceCounter()
  /// The number that goes on next.
  private var next: Int64?
  /// The number in front of the first packet, which is waited for although nothing shows that there is one.
  private var guess: Int64?
  private var held: [Int64: (packet: RTPPacket, at: MonotonicTime)] = [:]
  /// Bytes of packets that wait for an earlier one.
  private(set) var heldBytes = 0
  private var requests: [Int64: Request] = [:]
  /// A packet so far ahead that what is missing could not all be asked for. It alone shows no loss: its number may be wrong. It waits
  /// for one beside it.
  private var doubtful: (packet: RTPPacket, at: MonotonicTime)?
  /// When the row last went on, and how many packets came from behind it since then.
  private var wentOnAt = MonotonicTime.min
  private var behind = 0
  /// How often numbers jumped: wrong ones, and rows that began anew.
  private(set) var jumps: UInt64 = 0
  /// Packets that came, that were missing at first, and that came in time when they were asked for.
  private(set) var received: UInt64 = 0
  private(set) var late: UInt64 = 0
  private(set) var repaired: UInt64 = 0
  private(set) var dropped: UInt64 = 0

  init(patience: Int64) { leastPatience = patience }

  /// How long a missing packet is waited for, in nanoseconds: three answers, as two may be lost.
  private var patience: Int64 {
    guard let usual = answers.usual else { return leastPatience }
    return max(leastPatience, min(3 &* usual &+ Self.pause, WebRTCLimits.longestReorderWait))
  }

  /// The highest number so far, with its wraps (RFC 3550 §6.4.1).
  var highest: Int64? { counter.highest }

  /// Whether a packet of this number is still waited for, or did not come yet.
  func misses(_ sequence: UInt16) -> Bool {
    guard let next, let highest = counter.highest else { return false }
    let step = Int64(Int16(bitPattern: sequence &- UInt16(truncatingIfNeeded: highest)))
    return step <= Self.longestStep && highest &+ step >= next && held[highest &+ step] == nil
  }

  /// Waits for the packet in front of the first one, which is about to be received. If none comes, that is no loss.
  mutating func expect(before sequence: UInt16) {
    guard counter.highest == nil else { return }
    let number = counter.extend(sequence)
    (next, guess) = (number &- 1, number &- 1)
  }

  mutating func receive(_ packet: RTPPacket, now: MonotonicTime, to out: inout [Step]) {
    received &+= 1
    if let highest = counter.highest {
      let step = Int64(Int16(bitPattern: packet.sequence &- UInt16(truncatingIfNeeded: highest)))
      if step.magnitude > UInt64(Self.longestStep) {
        beginAnew(to: &out)
      } else if step > WebRTCLimits.missingPackets {
        return doubt(packet, now, to: &out)
      }
    }
    put(packet, now, to: &out)
  }

  /// Numbers begin anew with the next packet.
  private mutating func beginAnew(to out: inout [Step]) {
    dropDoubtful()
    flush(to: &out)
    answers.forget()
    counter = SequenceCounter()
    (next, guess, behind) = (nil, nil, 0)
    jumps &+= 1
  }

  /// Takes a packet far ahead of the row. With another one beside it there is a gap.
  private mutating func doubt(_ packet: RTPPacket, _ now: MonotonicTime, to out: inout [Step]) {
    if let other = doubtful {
      let step = Int(Int16(bitPattern: packet.sequence &- other.packet.sequence))
      guard step != 0 else { return }
      if step.magnitude <= UInt(WebRTCLimits.missingPackets) {
        doubtful = nil
        put(other.packet, other.at, to: &out)
        return put(packet, now, to: &out)
      }
      dropDoubtful()
    }
    doubtful = (packet, now)
  }

  /// Leaves out a packet whose number is wrong.
  private mutating func dropDoubtful() {
    guard doubtful != nil else { return }
    doubtful = nil
    dropped &+= 1
    jumps &+= 1
  }

  /// Judges a packet far ahead that had time enough: where the row went on, it is none of it.
  private mutating func judge(_ now: MonotonicTime, to out: inout [Step]) {
    guard let (packet, at) = doubtful, now &- at >= WebRTCLimits.reorderWait else { return }
    if wentOnAt > at { return dropDoubtful() }
    doubtful = nil
    put(packet, at, to: &out)
  }

  private mutating func put(_ packet: RTPPacket, _ now: MonotonicTime, to out: inout [Step]) {
    let number = counter.extend(packet.sequence)
    answers.came(number, now)
    var expected = next ?? number
    if number < expected {
      behind += 1
      guard behind >= Self.mostBehind, now &- wentOnAt >= Self.standstill else { return }
      beginAnew(to: &out)
      expected = counter.extend(packet.sequence)
      return goOn(with: packet, expected, from: expected, now, to: &out)
    }
    guard held.isEmpty || held[number] == nil else { return }
    goOn(with: packet, number, from: expected, now, to: &out)
  }

  private mutating func goOn(
    with packet: RTPPacket, _ number: Int64, from expected: Int64, _ now: MonotonicTime, to out: inout [Step]
  ) {
    (wentOnAt, behind) = (now, 0)
    if !requests.isEmpty, let request = requests.removeValue(forKey: number), request.asked > 0 { repaired &+= 1 }
    if number == guess {
      // There is one.
      guess = nil
      late &+= 1
    }
    if number == expected {
      out.append(.packet(packet))
      next = expected &+ 1
      release(to: &out)
      return
    }
    hold(packet, number, from: expected, now)
    while heldBytes > WebRTCLimits.heldBytes || held.count > WebRTCLimits.heldPackets { skip(to: &out) }
  }

  private mutating func hold(_ packet: RTPPacket, _ number: Int64, from expected: Int64, _ now: MonotonicTime) {
    let first = max(expected, (held.keys.max() ?? expected &- 1) &+ 1)
    if first < number {
      for missing in first..<number {
        guard requests.count < WebRTCLimits.missingPackets else { break }
        requests[missing] = Request(asked: 0, next: now)
        if missing != guess { late &+= 1 }
      }
    }
    held[number] = (packet, now)
    heldBytes &+= packet.payload.readableBytes
  }

  /// Lets go of all packets. What was counted stays.
  mutating func forget() { (held, heldBytes, requests, doubtful) = ([:], 0, [:], nil) }

  /// Gives up what was waited for long enough.
  mutating func expire(now: MonotonicTime, to out: inout [Step]) {
    judge(now, to: &out)
    while let oldest = held.values.map(\.at).min(), now &- oldest >= patience { skip(to: &out) }
  }

  /// Nothing was read for so long before `now`, in nanoseconds. What is missing may have come meanwhile. What was read since then has
  /// waited for nothing.
  mutating func pardon(_ time: Int64, now: MonotonicTime) {
    for number in held.keys {
      if let at = held[number]?.at { held[number]?.at = min(at &+ time, now) }
    }
    if let at = doubtful?.at { doubtful?.at = min(at &+ time, now) }
    if wentOnAt != .min { wentOnAt = min(wentOnAt &+ time, now) }
    answers.forget()
  }

  /// A packet has come again in another form, perhaps too late to be of use.
  mutating func answered(_ sequence: UInt16, now: MonotonicTime) {
    guard let highest = counter.highest else { return }
    answers.came(highest &+ Int64(Int16(bitPattern: sequence &- UInt16(truncatingIfNeeded: highest))), now)
  }

  /// Numbers to ask for now.
  mutating func missing(now: MonotonicTime) -> [UInt16] {
    guard !requests.isEmpty else { return [] }
    // Senders pass over a request while the answer to the one before is on its way.
    let pause = max(Self.pause, min(answers.usual ?? 0, leastPatience))
    var numbers: [UInt16] = []
    for (number, request) in requests.sorted(by: { $0.key < $1.key })
    where request.next <= now && request.asked < Self.mostRequests {
      if request.asked == 0 { answers.asked(for: number, now) }
      requests[number] = Request(asked: request.asked + 1, next: now &+ pause)
      numbers.append(UInt16(truncatingIfNeeded: number))
    }
    return numbers
  }

  /// Goes on behind the gap in front.
  private mutating func skip(to out: inout [Step]) {
    guard let first = held.keys.min(), let next else { return }
    let lost = next == guess ? 0 : first &- next
    guess = nil
    if lost > 0 {
      out.append(.gap(Int(clamping: lost)))
      dropped &+= UInt64(clamping: lost)
    }
    requests = requests.filter { $0.key >= first }
    self.next = first
    release(to: &out)
  }

  private mutating func release(to out: inout [Step]) {
    while !held.isEmpty, let number = next, let one = held.removeValue(forKey: number) {
      heldBytes &-= one.packet.payload.readableBytes
      out.append(.packet(one.packet))
      next = number &+ 1
    }
  }

  private mutating func flush(to out: inout [Step]) {
    while !held.isEmpty { skip(to: &out) }
    requests = [:]
    out.append(.gap(1))
  }
}
