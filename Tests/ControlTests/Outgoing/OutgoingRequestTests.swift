import Base
@testable import Control
import HTTP
import NIOCore
import NIOHTTP1
import ServerSupport
import Testing

@Suite(.timeLimit(.minutes(1))) struct OutgoingRequestTests {
  @Test(arguments: ["http://127.0.0.1:1/x", "https://host.example/path?a=b"])
  func `An address of HTTP or HTTPS can be used`(_ url: String) throws { try OutgoingRequest.check(url) }

  @Test(arguments: ["", "ftp://host", "host/path", "http://", "http://user:pass@host/", "file:///etc/passwd"])
  func `Other text cannot`(_ url: String) {
    #expect(throws: ValueError.self) { try OutgoingRequest.check(url) }
  }

  @Test func `What is asked arrives, and a redirection is not followed`() async throws {
    let route: HTTPTestServer.Route = { request, loop in
      request.path.first == "moved" ? .now(.redirect(to: "/", .temporary)) : HTTPTestServer.defaultRoute(request, loop)
    }
    try await HTTPTestServer.run(route: route) { address, _ in
      let base = "http://127.0.0.1:\(try #require(address.port))"
      let answer = try await OutgoingRequest(method: .POST, url: "\(base)/x", body: ByteBuffer(string: "abc")).send()
      #expect(answer.status == 200 && answer.body.map { String(buffer: $0) } == "post /x 3")
      let moved = try await OutgoingRequest(url: "\(base)/moved").send()
      #expect(moved.status == 307)
    }
  }

  @Test(arguments: [0, 1]) func `Of an answer that is too long the status alone is taken`(_ more: Int) async throws {
    let text = String(repeating: "a", count: OutgoingRequest.longestAnswer + more)
    try await HTTPTestServer.run(route: HTTPTestServer.always(.text(text, cache: .never))) { address, _ in
      let url = "http://127.0.0.1:\(try #require(address.port))/"
      let answer = try await OutgoingRequest(url: url).send()
      #expect(answer.status == 200 && (answer.body == nil) == (more > 0))
    }
  }

  @Test func `Who does not answer, or is not there, is a failure in time`() async throws {
    let route: HTTPTestServer.Route = { _, loop in
      .later(loop.scheduleTask(in: .seconds(3)) { HTTPResponse.text("late", cache: .never) }.futureResult)
    }
    try await HTTPTestServer.run(route: route) { address, _ in
      let url = "http://127.0.0.1:\(try #require(address.port))/"
      let began = ContinuousClock.now
      await #expect(throws: OutgoingRequest.Failure.self) {
        try await OutgoingRequest(url: url, patience: .milliseconds(300)).send()
      }
      #expect(ContinuousClock.now - began < .seconds(3))
    }
    await #expect(throws: OutgoingRequest.Failure.self) {
      try await OutgoingRequest(url: "http://127.0.0.1:1/", patience: .seconds(5)).send()
    }
  }
}
