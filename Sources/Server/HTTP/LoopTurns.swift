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

  /// Between two turns whose room was used up: as long as that, the loop looks at its sockets.
  private static let pause = TimeAmount.microseconds(200)

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
    schedule()
  }

  private func count() {
    // Tasks run when all sockets of the turn were served.
    if used == 0 { eventLoop.assumeIsolated().execute { self.used = 0 } }
    used += 1
  }

  private func schedule() {
    guard !isScheduled else { return }
    isScheduled = true
    eventLoop.assumeIsolated().scheduleTask(in: Self.pause) { self.serve() }
  }

  private func serve() {
    isScheduled = false
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
    if !addresses.isEmpty { schedule() }
  }
}
