@testable import Control
import FMP4
import Logging
import Publishing
import Streams
import Support
import Testing

/// Publications end with the keys that they depend on.
@Suite struct RevokedKeyTests {
  private func rules(_ key: String) throws -> Authorizer.Rules {
    var keys = PublishKeys()
    keys.add(Secret(key), for: StreamPattern(try #require(StreamName("cam"))))
    return Authorizer.Rules(publishKeys: keys)
  }

  @Test func `a key that is revoked while its publisher is admitted ends the publication`() async throws {
    let clock = ManualClock().clock
    let authorizer = Authorizer(try rules("old"), clock: clock)
    let fresh = try rules("new")
    // The outputs of a stream are made after the key was accepted, and before the stream has a holder.
    let registry = StreamRegistry(
      settings: { _ in StreamSettings() }, authorizer: authorizer, clock: clock,
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    ) { _, _, _, _ in
      authorizer.follow(fresh)
      return []
    }
    let name = try #require(StreamName("cam"))
    func publisher(_ key: String) -> PublishRequest {
      PublishRequest(stream: name, key: Secret(key), protocolName: "RTMP", remoteAddress: "10.0.0.1:5") { _ in }
    }
    let sink = try await registry.admit(publisher("old"))
    guard case .closed(.failed(let reason)) = sink.receive(.tracks([try SyntheticMedia.video()])) else {
      Issue.record("the publication goes on")
      return
    }
    #expect(reason.contains("revoked"))
    let next = try await registry.admit(publisher("new"))
    #expect(next.receive(.tracks([try SyntheticMedia.video()])) == .accepted)
  }
}
