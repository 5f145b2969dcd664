import Publishing
@testable import Streams
import Synchronization
import Testing

/// Unfinished messages of publishers: who has to end for them.
@Suite struct UnfinishedBudgetTests {
  private final class Ended: Sendable {
    private let all = Mutex<[(name: String, reason: String)]>([])

    func add(_ name: String, _ reason: String) { all.withLock { $0.append((name, reason)) } }

    var names: [String] { all.withLock { $0.map(\.name) } }
    var reasons: [String] { all.withLock { $0.map(\.reason) } }
  }

  private static let mebibyte = 1 << 20
  private let ended = Ended()

  /// Of 256 MiB of media 32 are for unfinished messages, of which an address without a key has 8.
  private let budget = UnfinishedBudget(perStream: 24 << 20, ofMedia: 256 << 20)

  private func open(_ name: String, of address: String? = nil) throws -> UnfinishedBudget.Account {
    budget.open(try #require(StreamName(name)), of: address) { [ended] in ended.add(name, $0) }
  }

  @Test func anAddressWithoutAKeyHasAQuarterAndItsLargestEnds() throws {
    let (small, large) = (try open("small", of: "192.0.2.1"), try open("large", of: "192.0.2.1"))
    let other = try open("other", of: "192.0.2.2")
    large.hold(5 * Self.mebibyte)
    other.hold(7 * Self.mebibyte)
    small.hold(3 * Self.mebibyte)
    #expect(ended.names.isEmpty)
    small.hold(4 * Self.mebibyte)
    #expect(ended.names == ["large"])
    #expect(ended.reasons.first?.contains("5 MiB") == true && ended.reasons.first?.contains("8 MiB") == true)
    #expect(budget.used == 11 * Self.mebibyte)
    // What it still tells counts no more, and it ends once.
    large.hold(20 * Self.mebibyte)
    #expect(ended.names == ["large"] && budget.used == 11 * Self.mebibyte)
  }

  @Test func beyondAllTheShareThatHoldsMostPays() throws {
    let keyed = [try open("a"), try open("b")]
    let anonymous = [try open("n1", of: "192.0.2.1"), try open("n2", of: "192.0.2.1")]
    for account in anonymous { account.hold(4 * Self.mebibyte) }
    keyed[0].hold(11 * Self.mebibyte)
    keyed[1].hold(13 * Self.mebibyte)
    #expect(ended.names.isEmpty && budget.used == budget.inAll)
    anonymous[0].hold(3 * Self.mebibyte)
    keyed[0].hold(12 * Self.mebibyte)
    #expect(ended.names.isEmpty)
    keyed[0].hold(12 * Self.mebibyte + 1)
    #expect(ended.names == ["b"])
    #expect(ended.reasons.first?.contains("--media-memory") == true)
  }

  @Test func publishersWithoutAKeyPayFirstWhileTheyHoldMoreThanHalf() throws {
    let keyed = try open("keyed")
    let anonymous = try (1...3).map { try open("n\($0)", of: "192.0.2.\($0)") }
    keyed.hold(13 * Self.mebibyte)
    for (account, size) in zip(anonymous, [6, 7, 6]) { account.hold(size * Self.mebibyte) }
    #expect(ended.names.isEmpty && budget.used == budget.inAll)
    // The largest of all has a key.
    keyed.hold(14 * Self.mebibyte)
    #expect(ended.names == ["n2"])
    // Those without a key hold 12 MiB, less than half of 32.
    keyed.hold(21 * Self.mebibyte)
    #expect(ended.names == ["n2", "keyed"])
    for account in anonymous { account.hold(0) }
    #expect(budget.used == 0)
  }

  @Test func publicationsThatWaitForTheirStartShareWhatIsLeft() throws {
    let (first, second) = (try open("a", of: "192.0.2.1"), try open("b", of: "192.0.2.1"))
    let other = try open("c", of: "192.0.2.2")
    #expect([first, second, other].map(\.mostAtStart) == [2, 2, 4].map { $0 * Self.mebibyte })
    second.hold(6 * Self.mebibyte)
    #expect(first.mostAtStart == Self.mebibyte)
    second.begin()
    #expect(first.mostAtStart == 2 * Self.mebibyte && other.mostAtStart == 4 * Self.mebibyte)
    first.hold(3 * Self.mebibyte)
    other.hold(8 * Self.mebibyte + 1)
    second.hold(0)
    // The reason tells of media before the start where there may be some.
    #expect(ended.names == ["b", "c"])
    #expect(ended.reasons.map { $0.contains("before its start") } == [false, true])
  }

  @Test func aPublicationHoldsNoMoreThanItsStreamMayKeep() throws {
    let account = try open("cam")
    account.hold(24 * Self.mebibyte)
    #expect(ended.names.isEmpty)
    account.hold(24 * Self.mebibyte + 1)
    #expect(ended.names == ["cam"] && ended.reasons.first?.contains("--stream-memory") == true)
  }

  @Test func whatAPublicationThatIsGoneHeldIsFree() throws {
    var account: UnfinishedBudget.Account? = try open("cam")
    account?.hold(Self.mebibyte)
    #expect(budget.used == Self.mebibyte)
    account = nil
    #expect(budget.used == 0 && ended.names.isEmpty)
  }

  @Test func aKeyFrameIsTakenHoweverLittleMemoryThereIs() throws {
    let budget = UnfinishedBudget(perStream: 16 << 20, ofMedia: 16 << 20)
    #expect(budget.inAll == 2 * Self.mebibyte && budget.perAddress == 2 * Self.mebibyte)
    let account = budget.open(try #require(StreamName("cam")), of: "192.0.2.1") { [ended] in ended.add("cam", $0) }
    #expect(account.mostAtStart == Self.mebibyte)
    account.hold(2 * Self.mebibyte)
    #expect(ended.names.isEmpty)
  }
}
