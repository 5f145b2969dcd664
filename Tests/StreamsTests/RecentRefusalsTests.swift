import Publishing
@testable import Streams
import Support
import Testing

/// What is remembered of publications that were refused.
@Suite struct RecentRefusalsTests {
  private func refused(_ stream: String?, from host: String, _ reason: String = "why", port: Int = 5)
    -> RefusedPublication
  {
    RefusedPublication(
      stream: stream, protocolName: "RTMP", remoteAddress: "\(host):\(port)", host: host, reason: reason,
      publicReason: reason)
  }

  @Test func theSameAgainIsCountedAndTheNewestIsLast() {
    var refusals = RecentRefusals()
    refusals.add(refused("cam", from: "10.0.0.1"), now: 1)
    refusals.add(refused("stage", from: "10.0.0.1"), now: 2)
    refusals.add(refused("cam", from: "10.0.0.1", port: 6), now: 3)
    #expect(refusals.entries.map(\.refused.stream) == ["stage", "cam"])
    #expect(refusals.entries.map(\.count) == [1, 2])
    #expect(refusals.entries.last?.first == 1 && refusals.entries.last?.last == 3)
    #expect(refusals.entries.last?.refused.remoteAddress == "10.0.0.1:6")
  }

  @Test func oneAddressDoesNotCrowdOutOthers() {
    var refusals = RecentRefusals()
    refusals.add(refused("cam", from: "10.0.0.1"), now: 0)
    for number in 1...1000 { refusals.add(refused("guess\(number)", from: "10.0.0.2"), now: .at(Int64(number))) }
    #expect(refusals.entries.count == 1 + RecentRefusals.limitOfHost)
    #expect(refusals.entries.first?.refused.stream == "cam")
    #expect(refusals.entries.last?.refused.stream == "guess1000")
  }

  @Test func aFewAddressesDoNotCrowdOutOthersEither() {
    var refusals = RecentRefusals()
    refusals.add(refused("cam", from: "10.0.0.1"), now: 0)
    for number in 1...1000 {
      refusals.add(refused("guess\(number)", from: "10.0.1.\(number % 14)"), now: .at(Int64(number)))
    }
    #expect(refusals.entries.count == RecentRefusals.limit)
    #expect(refusals.entries.first?.refused.stream == "cam")
    #expect(refusals.entries.last?.refused.stream == "guess1000")
    let counts = Dictionary(grouping: refusals.entries, by: \.refused.host).values.map(\.count)
    #expect(counts.allSatisfy { $0 <= RecentRefusals.limitOfHost })
  }

  @Test func itStaysSmallHoweverManyAreRefused() {
    var refusals = RecentRefusals()
    let long = String(repeating: "x", count: 10_000)
    for number in 1...1000 { refusals.add(refused(long, from: "host\(number)", long), now: .at(Int64(number))) }
    #expect(refusals.entries.count == RecentRefusals.limit)
    #expect(refusals.entries.first?.refused.host == "host901")
    for entry in refusals.entries {
      #expect(entry.refused.stream?.count == RecentRefusals.textLength)
      #expect(entry.refused.reason.count == RecentRefusals.textLength)
    }
  }

  @Test func aRefusalOfABusyNameNamesItsHolderToTheAdminAlone() throws {
    let name = try #require(StreamName("cam"))
    let request = PublishRequest(
      stream: name, key: nil, protocolName: "RTMP", remoteAddress: "10.0.0.2:6", host: "10.0.0.2"
    ) { _ in }
    let refused = RefusedPublication(.busy(stream: name, holder: "10.0.0.1:5"), of: request)
    #expect(refused.reason.contains("10.0.0.1:5"))
    #expect(!refused.publicReason.contains("10.0.0") && refused.publicReason.contains("published already"))
  }
}
