internal import Basics
internal import Ingest

/// Limits the bytes of messages that publishers have begun and not finished, and of media that waits for the start of a
/// publication. They are limited for a stream, for all publishers without a key of an address, and in all. Beyond a limit the
/// publication ends that holds most of the share in question.
final class UnfinishedBudget: Sendable {
  /// Part of the limit for media of all streams.
  private static let mediaShare = 8
  /// Part of the limit in all that publishers without a key of one address may hold.
  private static let addressShare = 4
  /// Bytes. A key frame is taken, however little memory media may have.
  private static let leastLimit = 2 << 20
  /// Part of a share that media of one publication may take before its start.
  private static let startShare = 2

  /// The limits in bytes: for one stream, for an address without a key, and in all.
  let perStream: Int
  let perAddress: Int
  let inAll: Int
  private let state = RankedMutex(.budget, State())

  /// The bytes of one publication. They are free when it is gone.
  final class Account: Sendable {
    private let budget: UnfinishedBudget
    private let number: Int
    /// The most bytes of media before the start.
    let mostAtStart: Int

    fileprivate init(_ budget: UnfinishedBudget, _ number: Int, mostAtStart: Int) {
      (self.budget, self.number, self.mostAtStart) = (budget, number, mostAtStart)
    }

    deinit { budget.close(number) }

    /// Sets the bytes. Ends publications as long as there are too many; that does not wait for them.
    func hold(_ bytes: Int) { budget.hold(bytes, by: number) }
  }

  fileprivate struct Holding: Sendable {
    let holder: WindowBudget.Holder
    var bytes = 0
    let end: @Sendable (_ reason: String) -> Void
  }

  fileprivate struct State {
    var next = 0
    var holdings: [Int: Holding] = [:]
    var byHolder: [WindowBudget.Holder: Int] = [:]
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
      return state.next
    }
    let share = min(perStream, address == nil ? inAll : perAddress)
    return Account(self, number, mostAtStart: share / Self.startShare)
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

  fileprivate mutating func remove(_ number: Int) -> UnfinishedBudget.Holding? {
    let holding = holdings[number]
    set(0, of: number)
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
      let held = "it holds \(UnfinishedBudget.text(holding.bytes)) of unfinished messages, and \(limit)"
      over.append((holding.end, "\(held); send smaller frames"))
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
    guard used > budget.inAll, let most = byHolder.max(by: { $0.value < $1.value })?.key, let victim = largest(of: most)
    else { return nil }
    return (victim, "all publishers may hold \(UnfinishedBudget.text(budget.inAll)) (--media-memory)")
  }

  private func largest(of holder: WindowBudget.Holder) -> Int? {
    holdings.filter { $0.value.holder == holder }.max { $0.value.bytes < $1.value.bytes }?.key
  }
}
