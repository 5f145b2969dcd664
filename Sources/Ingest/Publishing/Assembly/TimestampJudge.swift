internal import Base
package import FMP4
internal import NIOCore

/// Tells a wrong timestamp from a jump of the publisher's clock, before `Timeline` places either. A sample whose time is far from
/// where its track should be is doubtful. It waits, with what comes behind it, until others show which it is:
///
/// - The track goes on where it was: the time was wrong. The sample gets the time at which it was expected.
/// - The next one is behind it, and all of them rise: nothing says that a time is wrong.
/// - Two more samples of the track go on behind it, or another track has moved as far: the clock has jumped, or there is a gap.
///   All keep their times.
///
/// All other samples pass at once, with the times that they came with.
package struct TimestampJudge {
  /// A unit and its time of arrival.
  struct Judged {
    var unit: WireUnit
    let now: MonotonicTime
    /// Its time was wrong, and is the expected one now.
    var isMended = false
  }

  private struct Waiting {
    var judged: Judged
    var isDoubtful: Bool
  }

  private struct Track {
    let id: TrackID
    /// Time of the newest sample that is not doubtful, and when it was due: at its arrival, or before if it was late.
    var last: Int64
    var due: MonotonicTime
    /// From that one's predecessor to it.
    var step = TimestampJudge.usualStep
    /// How far its clock has jumped so far.
    var moved: Int64 = 0
    /// Times of its doubtful samples, as its publisher states them.
    var doubts: [Int64] = []
    /// Wrong times in a row.
    var wrong = 0
  }

  /// Nanoseconds. A time this far from its place is doubtful: audio would be corrected by that much (`AudioGrid`), and the timeline
  /// breaks at little more.
  private static let doubt: Int64 = 450_000_000
  /// Nanoseconds by which two tracks may differ in how far they have moved in one jump.
  private static let agreement: Int64 = 1_000_000_000
  /// A longer step ahead is no gap for `Timeline`, in nanoseconds.
  private static let longestGap: Int64 = 10_000_000_000
  /// Samples of one track that make a jump.
  private static let witnesses = 3
  /// Wrong times of a track in a row. One more is taken for a jump: the track goes on nowhere.
  private static let wrongInARow = 4
  /// Nanoseconds by which a sample may have come late: a pause that begins with it seems to be shorter than it was.
  private static let lateness: Int64 = 1_000_000_000
  /// Assumed distance to the second sample of a track, in nanoseconds.
  private static let usualStep: Int64 = 40_000_000

  private var tracks: [Track] = []
  private var waiting: [Waiting] = []
  /// Bytes of the units that wait.
  private(set) var byteCount = 0

  /// When the units that wait are judged by what has come. Nil if none wait.
  var deadline: MonotonicTime? { waiting.first.map { $0.judged.now &+ PublicationLimits.doubtWait } }

  /// Whether units of the track wait.
  package func holds(_ id: TrackID) -> Bool { waiting.contains { $0.judged.unit.track == id } }

  mutating func forget(_ id: TrackID) { tracks.removeAll { $0.id == id } }

  /// Takes a unit. True: its time holds, and nothing waits before it. Otherwise it waits for `next`.
  mutating func passes(_ unit: WireUnit, now: MonotonicTime) -> Bool {
    let isDoubtful = isDoubtful(unit, now)
    if !isDoubtful, waiting.isEmpty { return true }
    if !isDoubtful { reach(unit.time) }
    waiting.append(Waiting(judged: Judged(unit: unit, now: now), isDoubtful: isDoubtful))
    byteCount &+= unit.payload.readableBytes
    if waiting.count >= PublicationLimits.doubtfulUnits || byteCount >= PublicationLimits.doubtfulBytes { decide() }
    return false
  }

  /// The units that waited and wait no longer, in their order.
  mutating func takeJudged() -> [Judged] {
    let end = waiting.firstIndex(where: \.isDoubtful) ?? waiting.count
    guard end > 0 else { return [] }
    let judged = waiting.prefix(end).map(\.judged)
    waiting.removeFirst(end)
    for one in judged { byteCount &-= one.unit.payload.readableBytes }
    return judged
  }

  /// Judges all units that wait by what has come. One doubtful sample of a track that would break the timeline is wrong; one behind
  /// a gap, and several, are right.
  mutating func decide() {
    for index in tracks.indices { decide(index) }
  }

  private mutating func decide(_ index: Int) {
    guard let first = tracks[index].doubts.first else { return }
    if tracks[index].doubts.count == 1, !isGap(first, index), tracks[index].wrong < Self.wrongInARow {
      mend(index, before: nil)
    } else {
      accept(doubtsOf: index)
    }
  }

  /// Another track has come to a time: samples that were doubtful for being there already are right.
  private mutating func reach(_ time: Int64) {
    for index in tracks.indices {
      guard let first = tracks[index].doubts.first, first > tracks[index].last,
        (0..<Self.doubt).contains(time &- first)
      else { continue }
      accept(doubtsOf: index)
    }
  }

  // MARK: judging

  /// A loop, because a closure would copy each track for each sample.
  private func index(of id: TrackID) -> Int? {
    for index in tracks.indices where tracks[index].id == id { return index }
    return nil
  }

  private mutating func isDoubtful(_ unit: WireUnit, _ now: MonotonicTime) -> Bool {
    guard let index = index(of: unit.track) else {
      tracks.append(Track(id: unit.track, last: unit.time, due: now))
      return false
    }
    if unit.isCountedOn {
      // Its time follows from that of the sample before, and so does its fate.
      if tracks[index].doubts.isEmpty { accept(unit.time, index, now) }
      return !tracks[index].doubts.isEmpty
    }
    if let newest = tracks[index].doubts.last {
      let missing = waiting.count { $0.isDoubtful && $0.judged.unit.track == unit.track }
      let (last, step) = (tracks[index].last, tracks[index].step)
      let before = Self.distance(unit.time, from: last, to: last &+ step &* Int64(missing &+ 1))
      let behind = Self.distance(unit.time, from: newest, to: newest &+ step)
      if before <= behind, fits(unit.time, index, missing: missing, now) {
        if rises(index, to: unit.time) { accept(doubtsOf: index) } else { mend(index, before: unit.time) }
        accept(unit.time, index, now)
        return false
      }
      if behind < Self.doubt { return remainsDoubtful(unit.time, index, now) }
      // Neither more of them nor what was expected.
      decide(index)
    }
    guard !fits(unit.time, index, missing: 0, now) else {
      accept(unit.time, index, now)
      return false
    }
    return remainsDoubtful(unit.time, index, now)
  }

  /// Adds a doubtful time of a track. False if the time holds after all, with those before it.
  private mutating func remainsDoubtful(_ time: Int64, _ index: Int, _ now: MonotonicTime) -> Bool {
    tracks[index].doubts.append(time)
    let hasMoved = follows(index)
    guard hasMoved || tracks[index].doubts.count >= Self.witnesses else { return true }
    accept(doubtsOf: index)
    tracks[index].due = now
    return false
  }

  /// Whether the doubtful samples of a track are between the one before them and that of a time, in their order.
  private func rises(_ index: Int, to time: Int64) -> Bool {
    var last = tracks[index].last
    for doubt in tracks[index].doubts {
      guard doubt > last else { return false }
      last = doubt
    }
    return time > last
  }

  private func isGap(_ time: Int64, _ index: Int) -> Bool {
    time > tracks[index].last && time &- tracks[index].last <= Self.longestGap
  }

  /// Whether a time is where its track should be, or is explained by a pause: other media is there already, or as much real time
  /// has passed.
  private func fits(_ time: Int64, _ index: Int, missing: Int, _ now: MonotonicTime) -> Bool {
    let (last, step) = (tracks[index].last, tracks[index].step)
    if Self.distance(time, from: last, to: last &+ step &* Int64(missing &+ 1)) < Self.doubt { return true }
    guard time > last else { return false }
    if time &- last < (now &- tracks[index].due) &+ Self.doubt { return true }
    for other in tracks.indices where other != index {
      if (time &- tracks[other].last).magnitude < UInt64(Self.doubt) { return true }
    }
    return false
  }

  /// Whether another track has moved as far as the first doubtful sample of this one. What waits of that track holds, then.
  private mutating func follows(_ index: Int) -> Bool {
    guard let moved = moved(index) else { return false }
    for other in tracks.indices where other != index {
      let theirs = self.moved(other) ?? tracks[other].moved
      guard (theirs &- tracks[index].moved).magnitude >= UInt64(Self.doubt),
        (theirs &- moved).magnitude < UInt64(Self.agreement)
      else { continue }
      accept(doubtsOf: other)
      return true
    }
    return false
  }

  /// How far a track has moved if its doubtful samples are right. Nil if it has none.
  private func moved(_ index: Int) -> Int64? {
    let track = tracks[index]
    return track.doubts.first.map { track.moved &+ $0 &- track.last &- track.step }
  }

  // MARK: decisions

  private mutating func accept(_ time: Int64, _ index: Int, _ now: MonotonicTime) {
    let step = time &- tracks[index].last
    if step > 0 { tracks[index].step = min(step, Self.longestGap) }
    (tracks[index].last, tracks[index].wrong) = (time, 0)
    tracks[index].due = max(min(now, tracks[index].due &+ max(step, 0)), now &- Self.lateness)
  }

  /// The doubtful samples of a track are where their publisher says.
  private mutating func accept(doubtsOf index: Int) {
    guard let newest = tracks[index].doubts.last, let moved = moved(index) else { return }
    var last = newest
    for place in waiting.indices where waiting[place].isDoubtful {
      let judged = waiting[place].judged
      guard judged.unit.track == tracks[index].id else { continue }
      waiting[place].isDoubtful = false
      (last, tracks[index].due) = (max(last, judged.unit.time), judged.now)
    }
    let step = newest &- (tracks[index].doubts.dropLast().last ?? tracks[index].last)
    if (1...Self.longestGap).contains(step) { tracks[index].step = step }
    (tracks[index].moved, tracks[index].last, tracks[index].wrong) = (moved, last, 0)
    tracks[index].doubts = []
  }

  /// The times of a track's doubtful samples are wrong. Each gets the expected one: `end` is the time of the sample behind them;
  /// without one they go on by the last step.
  private mutating func mend(_ index: Int, before end: Int64?) {
    let places = waiting.indices.filter {
      waiting[$0].isDoubtful && waiting[$0].judged.unit.track == tracks[index].id
    }
    let (start, count) = (tracks[index].last, Int64(places.count))
    let span = end.map { max($0 &- start, 0) } ?? min(tracks[index].step, Self.usualStep) &* (count &+ 1)
    for (number, place) in places.enumerated() {
      // Whole milliseconds, as most protocols have: a finer time would change what `FrameGrid` thinks of the clock.
      let offset = span / (count &+ 1) &* Int64(number &+ 1) / 1_000_000 &* 1_000_000
      let unit = waiting[place].judged.unit
      waiting[place].judged.unit.time = start &+ offset
      waiting[place].judged.unit.composition = Self.composition(of: unit, at: start &+ offset)
      (waiting[place].judged.isMended, waiting[place].isDoubtful) = (true, false)
      tracks[index].last = start &+ offset
    }
    tracks[index].wrong &+= 1
    tracks[index].doubts = []
  }

  /// The composition offset of a unit whose decode time was wrong. The presentation time may have been right.
  private static func composition(of unit: WireUnit, at time: Int64) -> Int64 {
    guard unit.composition.magnitude > PublicationLimits.longestComposition else { return unit.composition }
    return unit.time &+ unit.composition &- time
  }

  private static func distance(_ time: Int64, from start: Int64, to end: Int64) -> Int64 {
    time < start ? start &- time : max(time &- end, 0)
  }
}
