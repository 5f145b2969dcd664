internal import NIOCore
internal import Synchronization

/// Units that connections share: bytes of memory, or places at a disk. An address has at most half of what others leave, so one
/// address cannot take everything, however many connections it has. Who gets nothing waits, and addresses that wait take turns.
package final class FairPool: Sendable {
  /// Called once with the units that a member waited for, on any thread.
  package typealias Grant = @Sendable (Int) -> Void

  /// What one connection takes, holds and waits for. It gives back what it holds when it is released.
  package final class Member: Sendable {
    private let pool: FairPool
    /// Used with the pool's lock held.
    fileprivate nonisolated(unsafe) let account: Account

    fileprivate init(pool: FairPool, account: Account) {
      self.pool = pool
      self.account = account
    }

    deinit { leave() }

    /// It has held units for long without giving any back, while others wait: it must end.
    package var isCalledIn: Bool { account.isCalledIn.load(ordering: .relaxed) }

    /// Takes up to `wanted` units, and no fewer than `FairPool.least` unless fewer are wanted. Nil if there are too few: then
    /// `grant` is called later, unless the member waits already or has left.
    package func take(_ wanted: Int, orLater grant: @escaping Grant) -> Int? {
      pool.state.withLock { $0.take(wanted, for: account, orLater: grant) }
    }

    /// Takes all of `wanted` units, or none.
    package func takeNow(_ wanted: Int) -> Bool {
      pool.state.withLock { $0.takeNow(wanted, for: account) }
    }

    package func giveBack(_ count: Int) {
      if count > 0 { pool.serve { $0.giveBack(count, of: self.account) } }
    }

    /// Gives back all units, and waits no longer.
    package func leave() {
      // Released without the lock, which what it refers to may take.
      var request: (Int, Grant)?
      pool.serve { request = $0.leave(self.account) }
      withExtendedLifetime(request) {}
    }
  }

  /// What the members of an address hold.
  fileprivate final class Share {
    let address: String
    var held = 0
    var members = 0
    /// Those who wait, in order. Some may wait no longer.
    var waiting = CircularBuffer<Account>()

    init(_ address: String) { self.address = address }
  }

  fileprivate final class Account {
    let share: Share
    let number: Int
    let isCalledIn = Atomic(false)
    var hasLeft = false
    var held = 0
    /// Calls of `look` while others waited, since it last gave anything back or began to hold something.
    var looks = 0
    var request: (wanted: Int, grant: Grant)?

    init(of share: Share, number: Int) { (self.share, self.number) = (share, number) }
  }

  fileprivate struct State {
    let limit: Int
    let least: Int
    var held = 0
    var numbered = 0
    var accounts: [Int: Account] = [:]
    var shares: [String: Share] = [:]
    /// Those of which somebody waits, each once, in the order of their turns.
    var turns = CircularBuffer<Share>()
  }

  fileprivate let state: Mutex<State>
  /// Calls of `look` after which a member that gives nothing back ends.
  private let patience: Int

  /// `least` is the fewest units that are given, unless fewer are wanted: a byte at a time is of no use.
  package init(limit: Int, least: Int, patience: Int = 10) {
    state = Mutex(State(limit: limit, least: least))
    self.patience = patience
  }

  /// Units that are held.
  package var held: Int { state.withLock { $0.held } }

  /// A member for a connection from `address`.
  package func member(of address: String) -> Member {
    Member(pool: self, account: state.withLock { $0.open(address) })
  }

  /// Changes what is held, and gives to those who wait.
  fileprivate func serve(_ change: (inout State) -> Void) {
    let grants = state.withLock { state in
      change(&state)
      return state.turns.isEmpty ? [] : state.grants()
    }
    for (grant, count) in grants { grant(count) }
  }

  /// Call twice a second. While somebody waits, it calls in the newest members, of the address that holds most, that have given
  /// nothing back for long: as many as addresses wait.
  package func look() {
    state.withLock { state in
      guard !state.turns.isEmpty else { return }
      let largest = state.shares.values.max { $0.held < $1.held }
      var stalled: [Account] = []
      for account in state.accounts.values where account.held > 0 {
        account.looks += 1
        if account.share === largest, account.looks >= patience { stalled.append(account) }
      }
      stalled.sort { $0.number > $1.number }
      for account in stalled.prefix(state.turns.count) { account.isCalledIn.store(true, ordering: .relaxed) }
    }
  }
}

extension FairPool.State {
  fileprivate mutating func open(_ address: String) -> FairPool.Account {
    numbered += 1
    let share = shares[address] ?? FairPool.Share(address)
    shares[address] = share
    share.members += 1
    let account = FairPool.Account(of: share, number: numbered)
    accounts[numbered] = account
    return account
  }

  /// Of `wanted` units, those that an address may take: it has at most half of what others leave.
  private func room(for wanted: Int, of share: FairPool.Share) -> Int? {
    let room = max(0, (limit - held + share.held) / 2 - share.held)
    return room >= min(wanted, least) ? min(wanted, room) : nil
  }

  private mutating func add(_ count: Int, to account: FairPool.Account) {
    if account.held == 0 { account.looks = 0 }
    account.held += count
    account.share.held += count
    held += count
  }

  fileprivate mutating func take(
    _ wanted: Int, for account: FairPool.Account, orLater grant: @escaping FairPool.Grant
  ) -> Int? {
    let share = account.share
    guard !account.hasLeft, account.request == nil else { return nil }
    if share.waiting.isEmpty, let count = room(for: wanted, of: share) {
      add(count, to: account)
      return count
    }
    account.request = (wanted, grant)
    if share.waiting.isEmpty { turns.append(share) }
    share.waiting.append(account)
    return nil
  }

  fileprivate mutating func takeNow(_ wanted: Int, for account: FairPool.Account) -> Bool {
    let share = account.share
    guard !account.hasLeft, share.waiting.isEmpty, room(for: wanted, of: share) == wanted else { return false }
    add(wanted, to: account)
    return true
  }

  fileprivate mutating func giveBack(_ count: Int, of account: FairPool.Account) {
    let count = min(count, account.held)
    account.held -= count
    account.share.held -= count
    account.looks = 0
    held -= count
  }

  /// Returns what it waited for.
  fileprivate mutating func leave(_ account: FairPool.Account) -> (wanted: Int, grant: FairPool.Grant)? {
    guard !account.hasLeft else { return nil }
    account.hasLeft = true
    accounts[account.number] = nil
    giveBack(account.held, of: account)
    account.share.members -= 1
    if account.share.members == 0 { shares[account.share.address] = nil }
    defer { account.request = nil }
    return account.request
  }

  /// Gives to those who wait, one of each address in turn.
  fileprivate mutating func grants() -> [(grant: FairPool.Grant, count: Int)] {
    var grants: [(grant: FairPool.Grant, count: Int)] = []
    var refused = 0
    while refused < turns.count, let share = turns.popFirst() {
      while let first = share.waiting.first, first.request == nil { share.waiting.removeFirst() }
      guard let account = share.waiting.first, let request = account.request else { continue }
      turns.append(share)
      guard let count = room(for: request.wanted, of: share) else {
        refused += 1
        // Where an address that holds nothing gets nothing, nobody does.
        if share.held == 0 { break }
        continue
      }
      refused = 0
      share.waiting.removeFirst()
      account.request = nil
      add(count, to: account)
      grants.append((request.grant, count))
    }
    return grants
  }
}
