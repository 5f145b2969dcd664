@testable import Control
import FMP4
import Logging
import NIOCore
import Publishing
import Settings
import Streams
import Support
import Testing

/// Who may take a name from the publisher that holds it.
@Suite struct TakeoverTests {
  private let time = ManualClock()
  private let here = "10.0.0.1"
  private let elsewhere = "10.0.0.2"

  /// Keys as they are given to `--publish-key`.
  private func registry(_ keys: String...) throws -> StreamRegistry {
    let configuration = try ServerConfiguration(loading: SettingSources(flags: ["publish-key": keys]))
    return StreamRegistry(
      settings: { _ in StreamSettings() },
      authorizer: Authorizer(Authorizer.Rules(publishKeys: configuration.publishKeys), clock: time.clock),
      clock: time.clock,
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    ) { _, _, _, _ in [] }
  }

  private func publisher(
    of name: String = "cam", key: String?, from host: String?, origin: PublishRequest.Origin = .peer
  ) throws -> PublishRequest {
    PublishRequest(
      stream: try #require(StreamName(name)), key: key.map { Secret($0) }, protocolName: "RTMP",
      remoteAddress: "\(host ?? "unknown"):5", host: host, origin: origin
    ) { _ in }
  }

  /// Publishes now.
  private func send(to sink: any MediaSink) throws {
    #expect(sink.receive(.tracks([try SyntheticMedia.video()])) == .accepted)
  }

  private func busy(_ holder: String) throws -> PublishRefusal {
    .busy(stream: try #require(StreamName("cam")), holder: "\(holder):5")
  }

  @Test func aKeyForAllNamesTakesNoNameFromAHolderElsewhereThatSends() async throws {
    for key in ["secret", "*=secret", "secret==", "*=secret=="] {
      let registry = try registry(key)
      let given = key.hasPrefix("*=") ? String(key.dropFirst(2)) : key
      let holder = try await registry.admit(try publisher(key: given, from: here))
      time.advance(seconds: 10)
      try send(to: holder)
      time.advance(seconds: 2.9)
      await #expect(throws: try busy(here)) { try await registry.admit(try publisher(key: given, from: elsewhere)) }
      try send(to: holder)
    }
  }

  @Test func aKeyForAllNamesTakesANameFromAHolderThatWasSilentForThreeSeconds() async throws {
    let registry = try registry("secret")
    let holder = try await registry.admit(try publisher(key: "secret", from: here))
    try send(to: holder)
    time.advance(seconds: 3)
    _ = try await registry.admit(try publisher(key: "secret", from: elsewhere))
    #expect(holder.receive(.progress(.zero)) == .closed(.replaced))
  }

  @Test func aKeyForAllNamesTakesANameFromItsOwnAddressAtOnce() async throws {
    let registry = try registry("secret")
    let holder = try await registry.admit(try publisher(key: "secret", from: here))
    try send(to: holder)
    _ = try await registry.admit(try publisher(key: "secret", from: here))
    #expect(holder.receive(.progress(.zero)) == .closed(.replaced))
    time.advance(seconds: 4.9)
    await #expect(throws: PublishRefusal.self) { try await registry.admit(try publisher(key: "secret", from: here)) }
  }

  @Test func thoseWithoutAnAddressAreNotOneAndTheSame() async throws {
    let registry = try registry("secret")
    let holder = try await registry.admit(try publisher(key: "secret", from: nil))
    try send(to: holder)
    await #expect(throws: try busy("unknown")) { try await registry.admit(try publisher(key: "secret", from: nil)) }
  }

  @Test func theNewestWithTheNamesOwnKeyWinsAtMostOnceInFiveSeconds() async throws {
    let registry = try registry("cam=of-cam", "*=any")
    let first = try await registry.admit(try publisher(key: "any", from: here))
    try send(to: first)
    let second = try await registry.admit(try publisher(key: "of-cam", from: elsewhere))
    #expect(first.receive(.progress(.zero)) == .closed(.replaced))
    time.advance(seconds: 4.9)
    try send(to: second)
    let tooSoon = PublishRefusal.tooManyTakeovers(stream: try #require(StreamName("cam")), retryAfterSeconds: 1)
    await #expect(throws: tooSoon) { try await registry.admit(try publisher(key: "of-cam", from: here)) }
    time.advance(seconds: 0.1)
    // A key for all names is weaker than the holder's, and a source of the server's own has none.
    await #expect(throws: try busy(elsewhere)) { try await registry.admit(try publisher(key: "any", from: here)) }
    let source = try publisher(key: nil, from: nil, origin: .server)
    await #expect(throws: try busy(elsewhere)) { try await registry.admit(source) }
    _ = try await registry.admit(try publisher(key: "of-cam", from: here))
    #expect(second.receive(.progress(.zero)) == .closed(.replaced))
  }

  @Test func aKeyOpensItsOwnNameAlone() async throws {
    let registry = try registry("cam=of-cam", "cam=next", "stage=of-stage")
    for (name, key) in [("cam", "of-stage"), ("stage", "next"), ("other", "of-cam"), ("cam", "cam=of-cam")] {
      await #expect(throws: PublishRefusal.unauthorized) {
        try await registry.admit(try publisher(of: name, key: key, from: here))
      }
    }
    await #expect(throws: PublishRefusal.unauthorized) { try await registry.admit(try publisher(key: nil, from: here)) }
    _ = try await registry.admit(try publisher(key: "next", from: here))
    _ = try await registry.admit(try publisher(of: "stage", key: "of-stage", from: here))
  }

  @Test func keysOfNamesAndForAllAreTakenFromFlagsAndVariable() throws {
    func right(_ keys: PublishKeys, _ key: String?, _ name: String) throws -> PublishRight? {
      keys.right(of: key.map { Secret($0) }, to: try #require(StreamName(name)))
    }
    func keys(_ flags: [String] = [], variable: String? = nil) throws -> PublishKeys {
      try ServerConfiguration(
        loading: SettingSources(
          flags: ["publish-key": flags], environment: variable.map { ["WEIR_PUBLISH_KEY": $0] } ?? [:])
      ).publishKeys
    }
    #expect(try right(keys(), nil, "cam") == .anonymous)
    // As before: a key alone, with the padding of base64, in a variable with commas, too.
    for whole in ["secret", "c2VjcmV0cw==", "cam=", "with,comma", "with,comma="] {
      #expect(try right(keys([whole]), whole, "cam") == .keyForAllNames)
      #expect(try right(keys(variable: whole), whole, "cam") == .keyForAllNames)
    }
    // A key goes on to the end, whatever is in it.
    #expect(try right(keys(["cam=a,b=c=="]), "a,b=c==", "cam") == .keyOfName)
    #expect(try right(keys(["*=a=b"]), "a=b", "cam") == .keyForAllNames)
    let several = try keys(variable: "cam=one,cam=two==,*=three")
    #expect(try right(several, "one", "cam") == .keyOfName)
    #expect(try right(several, "two==", "cam") == .keyOfName)
    #expect(try right(several, "three", "cam") == .keyForAllNames)
    #expect(try right(several, "one", "other") == nil)
    // Flags take the place of the variable.
    #expect(try right(keys(["cam=flag"], variable: "cam=variable"), "variable", "cam") == nil)
  }

  @Test func aKeyThatWouldOpenMoreThanIsMeantIsRefusedAndNotRepeated() {
    func complaint(_ flags: [String] = [], variable: String? = nil) -> String? {
      #expect(throws: ConfigurationError.self) {
        try ServerConfiguration(
          loading: SettingSources(
            flags: ["publish-key": flags], environment: variable.map { ["WEIR_PUBLISH_KEY": $0] } ?? [:]))
      }?.description
    }
    for text in ["", "*=", "*=="] {
      #expect(complaint([text])?.contains("the key is empty") == true, "\(text)")
    }
    #expect(complaint(["a/b=canary"])?.contains("is not a stream name") == true)
    #expect(complaint(["=canary"])?.contains("is not a stream name") == true)
    #expect(complaint(variable: "cam=canary,canary")?.contains("one of several keys has no name") == true)
    #expect(complaint(variable: "cam=canary,stage=")?.contains("one of several keys has no name") == true)
    #expect(complaint(variable: "*=,cam=canary")?.contains("the key is empty") == true)
    for said in [complaint(["a/b=canary"]), complaint(["=canary"]), complaint(variable: "cam=canary,canary")] {
      #expect(said?.contains("canary") == false && said?.contains("\n") == false)
    }
  }
}
