import Base
@testable import HTTP
import NIOCore
import NIOEmbedded
import ServerSupport
import Testing

/// Connections beyond those that an address, or all, may have.
@Suite(.timeLimit(.minutes(3))) struct HTTPProbeTests {
  private static func limits(_ change: (inout HTTPLimits) -> Void) -> HTTPLimits {
    var limits = HTTPLimits()
    change(&limits)
    return limits
  }

  /// Connections that hold all that an address may have: one for each of three, or silent ones.
  private static func fill(
    _ address: SocketAddress, _ listener: HTTPListener, asking: Bool
  ) async throws -> [HTTPRawClient] {
    var clients: [HTTPRawClient] = []
    for count in 1...3 {
      let client = try await HTTPRawClient.connect(to: address)
      try await client.wait("not counted") { _ in listener.connections == count }
      if asking { #expect(try await client.get("/").status == 200) }
      clients.append(client)
    }
    return clients
  }

  @Test(arguments: [true, false]) func `a probe is answered beyond the connections of its address, and nothing else`(
    asking: Bool
  ) async throws {
    let limits = Self.limits {
      if asking { $0.connectionsPerAddress = 3 } else { $0.requestlessConnectionsPerAddress = 3 }
    }
    try await HTTPTestServer.run(limits: limits) { address, listener in
      let held = try await Self.fill(address, listener, asking: asking)
      for _ in 0..<3 {
        let probe = try await HTTPRawClient.connect(to: address)
        let answer = try await probe.get("/healthz")
        #expect(answer.status == 200)
        #expect(answer["Connection"] == "close")
        try await probe.waitForClose()
        let other = try await HTTPRawClient.connect(to: address)
        let refusal = try await other.get("/metrics")
        #expect(refusal.status == 503)
        #expect(refusal.text.contains("This address"))
        try await other.waitForClose()
      }
      #expect(try await held[0].get("/").status == 200)
      for client in held { await client.close() }
      // Probes were counted for none of the limits.
      try await held[0].wait("still counted") { _ in listener.connections == 0 }
      for client in try await Self.fill(address, listener, asking: asking) { await client.close() }
    }
  }

  @Test func `connections for probes that ask nothing make room for the next, and are over soon`() async throws {
    let limits = Self.limits {
      ($0.connectionsPerAddress, $0.probeTime) = (3, .milliseconds(300))
    }
    try await HTTPTestServer.run(limits: limits) { address, listener in
      let held = try await Self.fill(address, listener, asking: true)
      var silent: [HTTPRawClient] = []
      for _ in 0..<ConnectionLimiter.probesPerAddress {
        silent.append(try await HTTPRawClient.connect(to: address))
      }
      try await held[0].wait("not counted") { _ in listener.connections == 3 + silent.count }
      let probe = try await HTTPRawClient.connect(to: address)
      #expect(try await probe.get("/healthz").status == 200)
      for client in silent + [probe] { try await client.waitForClose() }
      try await held[0].wait("still counted") { _ in listener.connections == 3 }
      for client in held { await client.close() }
    }
  }

  @Test func `an address without a refused connection is told even while those that must go have not gone`() {
    let limits = Self.limits { ($0.connections, $0.refusedConnections) = (1, 2) }
    let limiter = ConnectionLimiter(
      Reloadable(HTTPPolicy(limits, origins: .playersOnly)), limits: limits, memory: .unlimited,
      descriptors: .unlimited, traffic: HTTPTraffic(), waker: Waker())
    // Their loops do not run: what is closed stays.
    var channels: [EmbeddedChannel] = []
    defer { for channel in channels { _ = try? channel.finish(acceptAlreadyClosed: true) } }
    func admit(_ address: String) -> ConnectionLimiter.Admission {
      let channel = EmbeddedChannel()
      channels.append(channel)
      return limiter.admit(ConnectionLimiter.Client(address: address), on: channel, isTLS: false).admission
    }
    guard case .served = admit("viewer") else {
      Issue.record("the first connection has a place")
      return
    }
    #expect((0..<6).map { _ in admit("crowd") } == [.refused, .refused, .refused, .refused, .dropped, .dropped])
    #expect(admit("viewer") == .refused, "a probe from where a viewer is")
    #expect((0..<3).map { admit("other \($0)") } == [.refused, .refused, .refused])
    #expect(admit("one more") == .dropped)
  }

  /// A turn of the loop has room for some of them. Those of others come between.
  @Test(arguments: [false, true]) func `requests that are sent together are all answered in order`(
    closes: Bool
  ) async throws {
    try await HTTPTestServer.run { address, _ in
      let count = HTTPLimits().pipelinedRequests - 20
      var clients: [HTTPRawClient] = []
      for _ in 0..<8 { clients.append(try await HTTPRawClient.connect(to: address, closesWithServer: false)) }
      for client in clients {
        var text = (0..<count).map { "GET /\($0) HTTP/1.1\r\nHost: x\r\n\r\n" }.joined()
        text += "GET /last HTTP/1.1\r\nHost: x\r\n\(closes ? "" : "Connection: close\r\n")\r\n"
        try await client.send(text)
        if closes { try await client.closeOutput() }
      }
      for client in clients {
        try await client.wait("not all were answered") { $0.receivedText.hasSuffix("get /last 0") }
        let answers = client.receivedText.split(separator: "HTTP/1.1 ")
        #expect(answers.count == count + 1)
        #expect(answers.dropLast().enumerated().allSatisfy { $1.hasPrefix("200 ") && $1.hasSuffix("get /\($0) 0") })
        await client.close()
      }
    }
  }
}
