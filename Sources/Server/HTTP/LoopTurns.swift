internal import NIOCore

/// Shares the turns of an event loop. A turn takes what all sockets have brought, and what comes meanwhile waits for its end. So of
/// work that costs the loop more than its sender, a turn has room for so many pieces. The others wait for later turns, in which
/// addresses that wait go round. Confined to `eventLoop`.
final class LoopTurns {
  /// Has work that waits.
  protocol Member: AnyObject {
    /// Called once in a later turn: it does one piece. For each further one it asks again.
    func takeTurn()
  }

  /// The shortest time between two turns whose room was used up, and how many times as long as the turn took it is. A loop looks at
  /// its sockets only when no task is due: so the next one must not be when this one ends.
  private static let (pause, rest) = (TimeAmount.microseconds(200), 2)

  private let eventLoop: any EventLoop
  /// Pieces for which a turn has room.
  private let room: Int
  /// Pieces of this turn.
  private var used = 0
  private var waiting: [String: CircularBuffer<any Member>] = [:]
  /// Those of `waiting`, the next one first.
  private var addresses = CircularBuffer<String>()
  private var isScheduled = false

  init(eventLoop: any EventLoop, room: Int) {
    (self.eventLoop, self.room) = (eventLoop, room)
  }

  /// Whether this turn has room for another piece, which is done then. Nobody overtakes those who wait.
  func take() -> Bool {
    guard addresses.isEmpty, used < room else { return false }
    count()
    return true
  }

  /// Waits for a later turn.
  func wait(_ member: any Member, of address: String) {
    if waiting[address] == nil { addresses.append(address) }
    waiting[address, default: []].append(member)
    schedule(in: Self.pause)
  }

  private func count() {
    // Tasks run when all sockets of the turn were served.
    if used == 0 { eventLoop.assumeIsolated().execute { self.used = 0 } }
    used += 1
  }

  private func schedule(in pause: TimeAmount) {
    guard !isScheduled else { return }
    isScheduled = true
    eventLoop.assumeIsolated().scheduleTask(in: pause) { self.serve() }
  }

  private func serve() {
    let began = eventLoop.now
    while used < room, let address = addresses.popFirst() {
      var members = waiting.removeValue(forKey: address) ?? []
      guard let member = members.popFirst() else { continue }
      if !members.isEmpty {
        waiting[address] = members
        addresses.append(address)
      }
      count()
      member.takeTurn()
    }
    isScheduled = false
    if !addresses.isEmpty { schedule(in: max(Self.pause, (eventLoop.now - began) * Self.rest)) }
  }
}
