internal import Base

/// How much a viewer's network carries. Two signs have to agree: its bandwidth estimate is low, and its reports show loss or a longer
/// round trip. An estimate alone may be low because little was sent, or because a busy machine took packets late. A value type.
struct ViewerNetwork {
  /// What its reports say of all packets so far: the newest number, and how many are missing.
  private struct Count {
    var highest: UInt32
    var lost: Int32
  }

  /// The viewer's bandwidth estimate (REMB), in bytes per second; nil before the first one.
  private(set) var estimate: Int64?
  /// The estimate was below three quarters of what was sent, and does not reach the stream's rate yet.
  private var isLow = false
  /// While reports show a full network, and for a while after that: it may get so many quarters of its estimate.
  private var share: Int64?
  private var trips = RoundTrips()
  /// When loss was judged last, and the counts of that report.
  private var judged: (at: MonotonicTime, count: Count)?
  /// How many packets it asked for again since then; and the highest sequence number that it ever asked for.
  private var asked: (count: Int64, newest: UInt16?) = (0, nil)

  /// Somewhat more than the network carries, so that the estimate can rise. Each calm second allows half as much more, one that is
  /// neither calm nor full a quarter of the estimate more, and beyond the last nothing is held back.
  private static let (leastShare, mostShare): (Int64, Int64) = (5, 256)
  /// Percent of packets that are lost where the network is full, and where it is calm.
  private static let (muchLost, littleLost): (Int64, Int64) = (10, 2)
  /// Loss is judged once a second, in nanoseconds, and of so many packets.
  private static let (period, fewest): (Int64, Int64) = (1_000_000_000, 50)
  /// What it may get at least, in bytes per second.
  private static let leastLimit: Int64 = 8 * 1024

  /// What it may get in a second, in bytes; nil if nothing is held back.
  var limit: Int64? {
    guard isLow, let estimate, let share else { return nil }
    return max(estimate / 4 &* share, Self.leastLimit)
  }

  /// - Parameters:
  ///   - new: in bytes per second.
  ///   - rate: what was sent to it.
  ///   - stream: what it should get.
  mutating func take(estimate new: Int64, sent rate: Int64, stream: Int64) {
    let new = min(new, 1 << 40)
    isLow = isLow ? new < stream : new < rate / 4 * 3
    estimate = new
  }

  /// A sender report was sent, whose clock has these middle 32 bits (LSR, RFC 3550 §6.4.1).
  mutating func sentReport(clock: UInt32, at now: MonotonicTime) { trips.sent(clock, now) }

  /// It asks for packets again (NACK). One that it asks for repeatedly counts once: numbers up to the highest so far are skipped.
  mutating func asks(for numbers: [UInt16]) {
    for number in numbers where asked.newest.map({ Int16(bitPattern: number &- $0) > 0 }) ?? true {
      asked = (asked.count &+ 1, number)
    }
  }

  /// What it says of the packets of its video.
  mutating func take(_ reception: RTCPWriter.Reception, now: MonotonicTime) {
    trips.take(reception, now: now)
    let count = Count(highest: reception.highest, lost: reception.lost)
    guard let (since, before) = judged else {
      (judged, asked.count) = ((now, count), 0)
      return
    }
    let expected = Int64(Int32(bitPattern: count.highest &- before.highest))
    guard now &- since >= Self.period, expected >= Self.fewest else {
      // A receiver whose numbers go back has begun to count anew.
      if expected < 0 { (judged, asked.count) = ((now, count), 0) }
      return
    }
    // Its reports do not count as lost what came when it was sent again.
    let lost = max(Int64(count.lost) - Int64(before.lost), asked.count) * 100
    (judged, asked.count) = ((now, count), 0)
    if trips.showQueue || lost >= Self.muchLost * expected {
      share = Self.leastShare
    } else if let known = share {
      let more = lost < Self.littleLost * expected ? known / 2 : 1
      share = known < Self.mostShare ? known + more : nil
    }
  }
}

/// The round trips of a connection, by reports of its sender and of its receiver. A value type.
private struct RoundTrips {
  /// Sender reports, the newest last.
  private var reports: [(clock: UInt32, at: MonotonicTime)] = []
  /// The round trips of the last two that the receiver has told of, in nanoseconds.
  private var known: [(clock: UInt32, trip: Int64)] = []
  /// The shortest one of this minute and of the minute before. Older ones are forgotten, as the path may have changed.
  private var shortest: (now: Int64?, before: Int64?)
  private var whileBegan: MonotonicTime?
  /// The last report of the receiver knew none of the newest, though it has known others.
  private var isLost = false

  /// How many are kept, and how many of the newest a receiver may not know. They are sent each second.
  private static let (kept, newest) = (8, 3)
  /// In nanoseconds: by how much a queue makes a round trip longer; a minute; by how much a trip may be negative by rounding.
  private static let (queue, length, error): (Int64, Int64, Int64) = (150_000_000, 60_000_000_000, 5_000_000)

  mutating func sent(_ clock: UInt32, _ now: MonotonicTime) {
    if reports.count == Self.kept { reports.removeFirst() }
    reports.append((clock, now))
  }

  mutating func take(_ reception: RTCPWriter.Reception, now: MonotonicTime) {
    guard let place = reports.lastIndex(where: { $0.clock == reception.lastReport }) else {
      // Some receivers never tell of one.
      isLost = !known.isEmpty
      return
    }
    isLost = reports.count - place > Self.newest
    let (clock, sentAt) = reports[place]
    let trip = now &- sentAt &- Int64(reception.sinceReport) &* 1_000_000_000 / 65536
    guard trip >= -Self.error else { return }
    if let last = known.last, last.clock == clock {
      known[known.count - 1].trip = min(last.trip, trip)
    } else {
      known = known.suffix(1) + [(clock, trip)]
    }
    if whileBegan.map({ now &- $0 >= Self.length }) ?? true { (whileBegan, shortest) = (now, (nil, shortest.now)) }
    shortest.now = min(trip, shortest.now ?? trip)
  }

  /// A single one that is late decides nothing: the receiver may have been busy.
  var showQueue: Bool {
    guard let least = [shortest.now, shortest.before].compactMap({ $0 }).min() else { return false }
    return isLost || known.count == 2 && known.allSatisfy { $0.trip - least >= Self.queue }
  }
}
