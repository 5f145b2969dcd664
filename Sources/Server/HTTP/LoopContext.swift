internal import NIOCore

/// What the connections of one event loop share: the clock they look at, the date they
/// write. Time is counted in ticks by one timer, so that a request costs neither a timer nor a look at a clock.
/// Confined to `eventLoop`.
final class LoopContext {
  /// What a tick looks after.
  protocol Member: AnyObject {
    /// Called on every tick.
    func tick()
  }

  let eventLoop: any EventLoop
  /// Ticks since the start.
  private(set) var now = 0
  /// The date of the last tick.
  private(set) var date: HTTPDate

  /// What was asked for just now.
  let answers = ResponseTable()
  /// Of all loops.
  let traffic: HTTPTraffic

  private let interval: TimeAmount
  private let wallSeconds: @Sendable () -> Int64
  private var members: [ObjectIdentifier: any Member] = [:]
  private var timer: Scheduled<Void>?

  /// `wallSeconds` is the server's one wall clock, in seconds since 1970.
  init(
    eventLoop: any EventLoop, interval: TimeAmount, traffic: HTTPTraffic = HTTPTraffic(),
    wallSeconds: @escaping @Sendable () -> Int64
  ) {
    self.traffic = traffic
    self.eventLoop = eventLoop
    self.interval = interval
    self.wallSeconds = wallSeconds
    date = HTTPDate(second: wallSeconds())
  }

  /// The ticks after which `time` is certainly over.
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
      // No tick purges them any more, and they may hold the media of streams that are over.
      answers.clear()
    }
  }

  /// The members of the moment, which may leave meanwhile.
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
