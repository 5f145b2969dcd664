internal import Base
internal import Publishing

/// Limits the bytes of messages that publishers have begun and not finished, and of media that waits for the start of a
/// publication. They are limited for a stream, for all publishers without a key of an address, and in all. Beyond a limit the
/// publication ends that holds most of the share in question. Before that, publications that wait for their start begin.
final class UnfinishedBudget: Sendable {
  /// Part of the limit for media of all streams.
  private static let mediaShare = 8
  /// Part of the limit in all that publishers without a key of one address may hold.
  private static let addressShare = 4
  /// Bytes. A key frame is taken, however little memory media may have.
  private static let leastLimit = 2 << 20
  /// Part of a share that media of all its publications may take before their start.
  private static let startShare = 2
  /// Publishers without a key pay for all that is too much while they hold more than this part of it.
  fileprivate static let anonymousShare = 2

  /// The limits in bytes: for one stream, for an address without a key, and in all.
  let perStream: Int
  let perAddress: Int
  let inAll: Int
  private let state = RankedMutex(.budget, State())

  /// The bytes of one publication. They are free when it is gone.
  final class Account: HeldBytes {
    private let budget: UnfinishedBudget
    private let number: Int

    fileprivate init(_ budget: UnfinishedBudget, _ number: Int) { (self.budget, self.number) = (budget, number) }

    deinit { budget.close(number) }

    /// Sets the bytes. Ends publications as long as there are too many; that does not wait for them.
    func hold(_ bytes: Int) { budget.hold(bytes, by: number) }

    /// The most bytes of media before the start, as of now: of half the share, and of what is left of it, the part of one of
    /// those publications of the share that wait for their start.
    var mostAtStart: Int { budget.mostAtStart(of: number) }

    /// The publication has begun.
    func begin() { budget.state.withLock { $0.begin(number) } }
  }

  fileprivate struct Holding: Sendable {
    let holder: WindowBudget.Holder
    var bytes = 0
    /// It has not begun.
    var waits = true
    let end: @Sendable (_ reason: String) -> Void
  }

  fileprivate struct State {
    var next = 0
    var holdings: [Int: Holding] = [:]
    var byHolder: [WindowBudget.Holder: Int] = [:]
    /// Publications that wait for their start.
    var waiting: [WindowBudget.Holder: Int] = [:]
    var used = 0
  }

  /// - Parameter media: the limits in bytes of the media of a stream, and of all streams.
  init(perStream media: Int, ofMedia all: Int) {
    inAll = max(Self.leastLimit, all / Self.mediaShare)
    perAddress = max(Self.leastLimit, inAll / Self.addressShare)
    perStream = media
  }

  /// Bytes of all publications.
  var used: Int { state.withLock { $0.used } }

  /// Opens the account of a publication. `address` is its publisher's when that has no key. `end` ends it, at most once; it is
  /// called without a lock, and must not wait for the publication.
  func open(_ stream: StreamName, of address: String?, end: @escaping @Sendable (_ reason: String) -> Void) -> Account {
    let number = state.withLock { state in
      state.next += 1
      let holder = address.map(WindowBudget.Holder.address) ?? .stream(stream)
      state.holdings[state.next] = Holding(holder: holder, end: end)
      state.waiting[holder, default: 0] += 1
      return state.next
    }
    return Account(self, number)
  }

  private func mostAtStart(of number: Int) -> Int {
    state.withLock { state in
      guard let holder = state.holdings[number]?.holder else { return 0 }
      let share = if case .address = holder { min(perStream, perAddress) } else { min(perStream, inAll) }
      let left = max(0, share - (state.byHolder[holder] ?? 0))
      return min(share / Self.startShare, left) / max(1, state.waiting[holder] ?? 0)
    }
  }

  private func hold(_ bytes: Int, by number: Int) {
    let over = state.withLock { state in
      state.set(bytes, of: number)
      return state.takeOver(self, number)
    }
    for (end, reason) in over { end(reason) }
  }

  private func close(_ number: Int) {
    // Freed behind the lock: with what ends a publication its connection may go, and that has an account, too.
    _ = state.withLock { $0.remove(number) }
  }

  fileprivate static func text(_ bytes: Int) -> String { "\(bytes >> 20) MiB" }
}

extension UnfinishedBudget.State {
  fileprivate mutating func set(_ bytes: Int, of number: Int) {
    guard let holding = holdings[number] else { return }
    holdings[number]?.bytes = bytes
    byHolder[holding.holder, default: 0] += bytes - holding.bytes
    used += bytes - holding.bytes
  }

  fileprivate mutating func begin(_ number: Int) {
    guard let holding = holdings[number], holding.waits else { return }
    holdings[number]?.waits = false
    let others = (waiting[holding.holder] ?? 1) - 1
    waiting[holding.holder] = others > 0 ? others : nil
  }

  fileprivate mutating func remove(_ number: Int) -> UnfinishedBudget.Holding? {
    let holding = holdings[number]
    set(0, of: number)
    begin(number)
    guard let holding, holdings.removeValue(forKey: number) != nil else { return nil }
    if byHolder[holding.holder] == 0 { byHolder[holding.holder] = nil }
    return holding
  }

  /// Removes the publications that have to end after `number` has changed.
  fileprivate mutating func takeOver(
    _ budget: UnfinishedBudget, _ number: Int
  ) -> [(end: @Sendable (_ reason: String) -> Void, reason: String)] {
    guard let holder = holdings[number]?.holder else { return [] }
    var over: [(end: @Sendable (_ reason: String) -> Void, reason: String)] = []
    while let (victim, limit) = excess(after: number, of: holder, budget), let holding = remove(victim) {
      let bytes = UnfinishedBudget.text(holding.bytes)
      let reason =
        holding.waits
        ? "it holds \(bytes) of media before its start and of unfinished messages, and \(limit); "
          + "start fewer publications at a time, or send smaller frames"
        : "it holds \(bytes) of unfinished messages, and \(limit); send smaller frames"
      over.append((holding.end, reason))
    }
    return over
  }

  /// Which publication has to end, and by which limit. Nil if none has to.
  private func excess(
    after number: Int, of holder: WindowBudget.Holder, _ budget: UnfinishedBudget
  ) -> (victim: Int, limit: String)? {
    if let bytes = holdings[number]?.bytes, bytes > budget.perStream {
      return (number, "its stream may hold \(UnfinishedBudget.text(budget.perStream)) (--stream-memory)")
    }
    if case .address = holder, byHolder[holder] ?? 0 > budget.perAddress, let victim = largest(of: holder) {
      let limit = UnfinishedBudget.text(budget.perAddress)
      return (victim, "publishers without a key of its address may hold \(limit) (--media-memory); give it a key")
    }
    guard used > budget.inAll else { return nil }
    let anonymous = byHolder.filter { if case .address = $0.key { true } else { false } }
    let isTheirs = anonymous.values.reduce(0, +) > budget.inAll / UnfinishedBudget.anonymousShare
    guard let most = (isTheirs ? anonymous : byHolder).max(by: { $0.value < $1.value })?.key,
      let victim = largest(of: most)
    else { return nil }
    return (victim, "all publishers may hold \(UnfinishedBudget.text(budget.inAll)) (--media-memory)")
  }

  private func largest(of holder: WindowBudget.Holder) -> Int? {
    holdings.filter { $0.value.holder == holder }.max { $0.value.bytes < $1.value.bytes }?.key
  }
}
