internal import NIOCore

/// What the connections of one event loop share: clock, date and recent responses. One timer counts time in ticks, so that a
/// request needs neither a timer nor a clock. Confined to `eventLoop`.
final class LoopContext {
  /// An object with deadlines.
  protocol Member: AnyObject {
    /// Called on each tick.
    func tick()
  }

  let eventLoop: any EventLoop
  /// Ticks since the start.
  private(set) var now = 0
  /// The date of the last tick.
  private(set) var date: HTTPDate

  /// Recent responses.
  let answers = ResponseTable()
  /// Requests behind the first one of a read: of a turn two or three milliseconds.
  let requests: LoopTurns
  /// Of all loops.
  let traffic: HTTPTraffic

  /// Of a turn.
  static let furtherRequests = 256

  private let interval: TimeAmount
  private let wallSeconds: @Sendable () -> Int64
  private var members: [ObjectIdentifier: any Member] = [:]
  private var timer: Scheduled<Void>?

  /// `wallSeconds` is the server's wall clock, in seconds since 1970.
  init(
    eventLoop: any EventLoop, interval: TimeAmount, traffic: HTTPTraffic = HTTPTraffic(),
    wallSeconds: @escaping @Sendable () -> Int64
  ) {
    self.traffic = traffic
    self.eventLoop = eventLoop
    requests = LoopTurns(eventLoop: eventLoop, room: Self.furtherRequests)
    self.interval = interval
    self.wallSeconds = wallSeconds
    date = HTTPDate(second: wallSeconds())
  }

  /// The number of ticks after which `time` is certainly over.
  func ticks(_ time: TimeAmount) -> Int {
    Int(clamping: (time.nanoseconds &+ interval.nanoseconds &- 1) / max(1, interval.nanoseconds)) &+ 1
  }

  /// The timer runs while there are members.
  func add(_ member: any Member) {
    members[ObjectIdentifier(member)] = member
    guard timer == nil else { return }
    refreshDate()
    schedule()
  }

  func remove(_ member: any Member) {
    members[ObjectIdentifier(member)] = nil
    if members.isEmpty {
      timer?.cancel()
      timer = nil
      // No tick purges the responses any more, and they may hold media of ended streams.
      answers.clear()
    }
  }

  /// A copy of the current members; members may leave during an iteration.
  var currentMembers: [any Member] { Array(members.values) }

  private func schedule() {
    timer = eventLoop.assumeIsolated().scheduleTask(in: interval) { self.tick() }
  }

  private func tick() {
    schedule()
    now &+= 1
    refreshDate()
    answers.purge()
    for member in currentMembers { member.tick() }
  }

  private func refreshDate() {
    let second = wallSeconds()
    if second != date.second { date = HTTPDate(second: second) }
  }
}
