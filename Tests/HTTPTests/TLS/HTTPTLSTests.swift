@testable import HTTP
import NIOCore
import NIOSSL
import ServerSupport
import Storage
import Testing

@Suite(.timeLimit(.minutes(3))) struct HTTPTLSTests {
  @Test func textAndMediaArriveWholeOverTLS() async throws {
    let (server, clientContext) = try tlsContexts()
    let total = 3_000_000
    let memory = try memoryFile(total)
    let disk = try diskFile(total)
    let route: HTTPTestServer.Route = { request, _ in
      switch request.path.first {
      case "memory":
        .now(
          .media(
            [
              .bytes(ByteBuffer(bytes: patternBytes(0..<1000))),
              .file(FileRange(file: memory, offset: 1000, length: total - 1000)),
            ], type: .mp4, cache: .immutable))
      case "disk": .now(.media([.file(FileRange(file: disk, offset: 0, length: total))], type: .mp4, cache: .recording))
      default: .now(.text("tls \(request.source.isTLS)", cache: .never))
      }
    }
    try await HTTPTestServer.run(tls: server, route: route) { address, _ in
      for buffer in [nil, Int32(65536)] {
        let client = try await HTTPRawClient.connect(to: address, tls: clientContext, receiveBuffer: buffer)
        #expect(try await client.get("/").text == "tls true")
        #expect(try await client.get("/memory").body == patternBytes(0..<total))
        #expect(try await client.get("/disk").body == patternBytes(0..<total))
        #expect(try await client.get("/memory", "Range: bytes=999-1000").body == patternBytes(999..<1001))
        let last = try await client.get("/", "Connection: close")
        #expect(last["Connection"] == "close")
        try await client.waitForClose()
      }
    }
  }

  /// By a client that offers nothing else.
  @Test(arguments: [
    (NIOTLSCipher.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, true),
    (.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, true),
    (.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA, false), (.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA, false),
  ])
  func olderSuitesAreNotTaken(_ suite: NIOTLSCipher, isTaken: Bool) async throws {
    let (server, _) = try tlsContexts()
    var configuration = TLSConfiguration.makeClientConfiguration()
    configuration.certificateVerification = .none
    (configuration.maximumTLSVersion, configuration.cipherSuiteValues) = (.tlsv12, [suite])
    let context = try NIOSSLContext(configuration: configuration)
    let route: HTTPTestServer.Route = { _, _ in .now(.text("x", cache: .never)) }
    try await HTTPTestServer.run(tls: server, route: route) { address, _ in
      let answer = try? await HTTPRawClient.connect(to: address, tls: context).get("/").text
      #expect(answer == (isTaken ? "x" : nil))
    }
  }

  @Test func aReaderThatStopsReadingOverTLSIsCut() async throws {
    let (server, clientContext) = try tlsContexts()
    var limits = HTTPLimits()
    limits.writeStall = .milliseconds(300)
    let file = try memoryFile(16 << 20)
    let route: HTTPTestServer.Route = { request, _ in
      .now(
        request.path.isEmpty
          ? .text("x", cache: .never)
          : .media([.file(FileRange(file: file, offset: 0, length: 16 << 20))], type: .mp4, cache: .immutable))
    }
    try await HTTPTestServer.run(limits: limits, tls: server, route: route) { address, listener in
      let client = try await HTTPRawClient.connect(to: address, tls: clientContext, receiveBuffer: 8192)
      #expect(try await client.get("/").text == "x")
      try await client.stopReading()
      try await client.send("GET /media HTTP/1.1\r\nHost: x\r\n\r\n")
      try await client.wait("the reader was not cut", for: .seconds(30)) { _ in listener.connections == 0 }
      await client.close()
    }
  }

  @Test func plainHTTPOnTheTLSPortAndSilenceEndTheConnection() async throws {
    let (server, _) = try tlsContexts()
    var limits = HTTPLimits()
    limits.headerTime = .milliseconds(1000)
    try await HTTPTestServer.run(limits: limits, tls: server) { address, _ in
      let plain = try await HTTPRawClient.connect(to: address)
      try await plain.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
      try await plain.waitForClose()
      let silent = try await HTTPRawClient.connect(to: address)
      try await silent.waitForClose(for: .seconds(20))
    }
  }
}
