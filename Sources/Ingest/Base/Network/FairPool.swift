internal import NIOCore
internal import Synchronization

/// Units that connections share: bytes of memory, or places at a disk. An address has at most half of what others leave
/// (`FairShare`), so one address cannot take everything, however many connections it has. Who gets nothing waits, and addresses
/// that wait take turns.
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

    deinit {
      stop()
      pool.serve { $0.leave(self.account) }
    }

    /// It has held units for long without giving any back, while others wait: it must end.
    package var isCalledIn: Bool { account.isCalledIn.load(ordering: .relaxed) }

    /// Takes up to `wanted` units, and no fewer than `FairPool.least` unless fewer are wanted. Nil if there are too few: then
    /// `grant` is called later, unless the member waits already or has stopped.
    package func take(_ wanted: Int, orLater grant: @escaping Grant) -> Int? {
      pool.state.withLock { $0.take(wanted, for: account, orLater: grant) }
    }

    /// Takes all of `wanted` units, or none.
    package func takeNow(_ wanted: Int) -> Bool {
      pool.state.withLock { $0.takeNow(wanted, for: account) }
    }

    /// Takes all of `wanted` units, or none. Then who holds units for long and takes nothing is called in, as if somebody waited.
    package func claim(_ wanted: Int) -> Bool {
      pool.state.withLock { $0.claim(wanted, for: account) }
    }

    package func giveBack(_ count: Int) {
      if count > 0 { pool.serve { $0.giveBack(count, of: self.account) } }
    }

    /// Part of what its units are for is done, and they are still needed. That counts as giving back.
    package func progress(_ count: Int) {
      pool.state.withLock { $0.progress(count, of: account) }
    }

    /// Not its client, but a disk has delayed it: it is not called in for that.
    package func restart() {
      pool.state.withLock { $0.age(account) }
    }

    /// Waits no longer, and takes nothing from now on. What it holds it keeps until it gives that back or is released.
    package func stop() {
      // Released without the lock, which what it refers to may take.
      let request = pool.state.withLock { $0.stop(account) }
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
    /// It is among those that have their turns.
    var hasTurn = false

    init(_ address: String) { self.address = address }
  }

  fileprivate final class Account {
    let share: Share
    let number: Int
    let isCalledIn = Atomic(false)
    var hasStopped = false
    var held = 0
    /// Calls of `look` while others waited, since it last gave much back or began to hold something; and what it gave back since.
    var looks = 0
    var givenBack = 0
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
    /// Claims that were refused since the last `look`.
    var refusals = 0
  }

  /// Units beyond the limit, one part in this many of it, are for wants of `small` units at most: those pass who waits.
  fileprivate static let smallShare = 8
  fileprivate static let small = 4096
  /// The most addresses that are asked at once whether they may have something.
  fileprivate static let asked = 64

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

  /// Call twice a second. While somebody waits, it calls in members that have given next to nothing back for long: the newest, of
  /// the address of such that holds most, and as many as addresses wait or claims were refused.
  package func look() {
    state.withLock { state in
      let wanting = state.turns.count + min(state.refusals, Self.asked)
      state.refusals = 0
      guard wanting > 0 else { return }
      var stalled: [Account] = []
      for account in state.accounts.values where account.held > 0 {
        account.looks += 1
        if account.looks >= patience { stalled.append(account) }
      }
      guard let largest = stalled.max(by: { $0.share.held < $1.share.held })?.share else { return }
      stalled = stalled.filter { $0.share === largest }.sorted { $0.number > $1.number }
      for account in stalled.prefix(wanting) { account.isCalledIn.store(true, ordering: .relaxed) }
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

  /// Of `wanted` units, those that an address may take: it has at most half of what others leave, and its first ones as long as
  /// there are any.
  private func room(for wanted: Int, of share: FairPool.Share) -> Int? {
    let half = FairShare.room(own: share.held, taken: held, of: limit)
    let room = share.held == 0 ? max(half, min(least, limit - held)) : half
    return room >= min(wanted, least) ? min(wanted, room) : nil
  }

  /// Few units are given at once, from units of their own: a playlist does not wait for downloads. An address has its share of
  /// these, too.
  private func hasRoom(forFew wanted: Int, of share: FairPool.Share) -> Bool {
    least > 1 && wanted <= FairPool.small
      && FairShare.allows(wanted, own: share.held, taken: held, of: limit + limit / FairPool.smallShare)
  }

  /// Whether somebody of the address waits. Who has stopped does not.
  private func isAwaited(_ share: FairPool.Share) -> Bool {
    while let first = share.waiting.first, first.request == nil { share.waiting.removeFirst() }
    return !share.waiting.isEmpty
  }

  private mutating func giveTurn(_ share: FairPool.Share) {
    guard !share.hasTurn else { return }
    share.hasTurn = true
    turns.append(share)
  }

  private mutating func add(_ count: Int, to account: FairPool.Account) {
    if account.held == 0 { age(account) }
    account.held += count
    account.share.held += count
    held += count
  }

  fileprivate mutating func take(
    _ wanted: Int, for account: FairPool.Account, orLater grant: @escaping FairPool.Grant
  ) -> Int? {
    let share = account.share
    guard !account.hasStopped, account.request == nil else { return nil }
    if hasRoom(forFew: wanted, of: share) {
      add(wanted, to: account)
      return wanted
    }
    if !isAwaited(share), let count = room(for: wanted, of: share) {
      add(count, to: account)
      return count
    }
    account.request = (wanted, grant)
    giveTurn(share)
    share.waiting.append(account)
    return nil
  }

  fileprivate mutating func takeNow(_ wanted: Int, for account: FairPool.Account) -> Bool {
    let share = account.share
    guard !account.hasStopped,
      hasRoom(forFew: wanted, of: share) || !isAwaited(share) && room(for: wanted, of: share) == wanted
    else { return false }
    add(wanted, to: account)
    return true
  }

  fileprivate mutating func claim(_ wanted: Int, for account: FairPool.Account) -> Bool {
    guard FairShare.allows(wanted, own: account.share.held, taken: held, of: limit) else {
      refusals += 1
      return false
    }
    add(wanted, to: account)
    return true
  }

  fileprivate mutating func giveBack(_ count: Int, of account: FairPool.Account) {
    let count = min(count, account.held)
    account.held -= count
    account.share.held -= count
    held -= count
    progress(count, of: account)
  }

  fileprivate func progress(_ count: Int, of account: FairPool.Account) {
    account.givenBack += count
    if account.givenBack >= least || account.held == 0 { age(account) }
  }

  /// Its age begins again.
  fileprivate func age(_ account: FairPool.Account) {
    (account.looks, account.givenBack) = (0, 0)
    account.isCalledIn.store(false, ordering: .relaxed)
  }

  /// Returns what it waited for.
  fileprivate mutating func stop(_ account: FairPool.Account) -> (wanted: Int, grant: FairPool.Grant)? {
    account.hasStopped = true
    defer { account.request = nil }
    return account.request
  }

  fileprivate mutating func leave(_ account: FairPool.Account) {
    giveBack(account.held, of: account)
    accounts[account.number] = nil
    account.share.members -= 1
    if account.share.members == 0 { shares[account.share.address] = nil }
  }

  /// Gives to those who wait, one of each address in turn.
  fileprivate mutating func grants() -> [(grant: FairPool.Grant, count: Int)] {
    var grants: [(grant: FairPool.Grant, count: Int)] = []
    var refused = 0
    while refused < min(turns.count, FairPool.asked), let share = turns.popFirst() {
      share.hasTurn = false
      guard isAwaited(share), let account = share.waiting.first, let request = account.request else { continue }
      giveTurn(share)
      guard let count = room(for: request.wanted, of: share) else {
        refused += 1
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
