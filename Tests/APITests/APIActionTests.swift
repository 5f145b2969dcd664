@testable import API
import Base
@testable import Delivery
import HTTP
import NIOCore
import NIOEmbedded
import NIOHTTP1
import Testing

/// How long an action waits for the state that it leads to, and what it answers then.
@Suite struct APIActionTests {
  private func action(_ query: String?) throws -> APIAction {
    let target = try RequestTarget(parsing: "/api/v1/sources/cam/stop\(query.map { "?wait=\($0)" } ?? "")")
    let request = APIRequest(
      http: HTTPRequest(method: .post, target: target), viewer: Viewer(rule: nil), values: ["cam", "stop"],
      eventLoop: EmbeddedEventLoop())
    return try APIAction(request, telling: "/api/v1/sources/cam")
  }

  @Test(arguments: [(nil, 2000), ("0s", 0), ("250ms", 250), ("30s", 30_000)] as [(String?, Int64)])
  func aClientSaysHowLongItWaits(query: String?, milliseconds: Int64) throws {
    #expect(try action(query).patience == .milliseconds(milliseconds))
  }

  @Test(arguments: ["", "10", "31s", "1h", "x", "-1s"]) func otherWaitsAreRefused(query: String) {
    #expect(throws: ValueError.self) { try action(query) }
  }

  @Test func aStateThatIsNotReachedIsAcceptedAndSaysWhereToAsk() throws {
    let state = VersionAnswer(version: "1")
    let done = try action(nil).response(state, isReached: true)
    #expect(done.status == .ok && !done.headers.contains { $0.name == "Location" })
    let pending = try action(nil).response(state, isReached: false)
    #expect(pending.status == .accepted)
    #expect(pending.headers.first { $0.name == "Location" }?.value == "/api/v1/sources/cam")
  }

  @Test func whatIsReachedAtOnceNeedsNoWait() throws {
    let answer = try action(nil).when({ true }) { isReached in
      HTTPResponse(status: isReached ? .ok : .accepted)
    }
    guard case .now(let response) = answer.kind else {
      Issue.record("it waits")
      return
    }
    #expect(response.status == .ok)
  }

  @Test func itLooksUntilTheStateIsThereOrTheTimeIsOver() throws {
    let loop = EmbeddedEventLoop()
    let target = try RequestTarget(parsing: "/api/v1/sources/cam/stop?wait=0s")
    let request = APIRequest(
      http: HTTPRequest(method: .post, target: target), viewer: Viewer(rule: nil), values: [], eventLoop: loop)
    let answer = try APIAction(request, telling: "/").when({ false }) { isReached in
      HTTPResponse(status: isReached ? .ok : .accepted)
    }
    guard case .later(let future) = answer.kind else {
      Issue.record("it does not wait")
      return
    }
    loop.advanceTime(by: .milliseconds(50))
    #expect(try future.wait().status == .accepted)
  }
}
