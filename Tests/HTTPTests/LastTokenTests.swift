import Base
@testable import HTTP
import NIOCore
import NIOHTTP1
import Synchronization
import Testing

/// What admits a request with a token to a response that the table has.
@Suite struct LastTokenTests {
  private final class Pass: ViewerPass {
    let isGood = Mutex(true)
    var holds: Bool { isGood.withLock { $0 } }
  }

  /// A stream that is open until it is closed, and then for the token that it was extended by.
  private final class Open: ViewerOpenness {
    let isOpen: Pass
    let token: (any ViewerPass)?
    init(_ isOpen: Pass, _ token: (any ViewerPass)? = nil) { (self.isOpen, self.token) = (isOpen, token) }
    var holds: Bool { isOpen.holds || token?.holds == true }
    func extended(by token: any ViewerPass) -> any ViewerPass { Open(isOpen, token) }
  }

  private struct Passes: ViewerPasses {
    let pass: Pass
    func remembered(_ token: ByteBuffer) -> (any ViewerPass)? { String(buffer: token) == "good" ? pass : nil }
  }

  private func head(_ target: String) -> RequestHead {
    RequestHead(
      method: .get, version: .http1_1, target: ByteBuffer(string: target), fields: .empty, hosts: 1)
  }

  private func response(_ openness: Open) -> SharedResponse {
    let sharing = Cacheability(Generation())
    let response = StandardResponse.failed
    return SharedResponse(
      response, sharing, HTTPAnswer.now(response, sharing).admitted(toOpen: openness, by: openness))
  }

  @Test func `a viewer with a token goes on when its stream is open to all no longer`() throws {
    let (stream, token) = (Pass(), Pass())
    let answer = response(Open(stream))
    var last = LastToken()
    let own = last.admission(of: head("/~good/live/cam/1.m4s"), to: answer, Passes(pass: token), at: 0)
    let pass = try #require(own?.pass)
    let again = last.admission(of: head("/~good/live/cam/1.m4s"), to: answer, Passes(pass: token), at: 0)
    #expect(again?.pass === pass, "it is made once")
    let others = last.admission(of: head("/live/cam/1.m4s"), to: answer, Passes(pass: token), at: 0)
    let open = try #require(others?.pass)
    stream.isGood.withLock { $0 = false }
    #expect(pass.holds && !open.holds)
    token.isGood.withLock { $0 = false }
    #expect(!pass.holds)
  }

  @Test func `what is open no longer is left to the routes`() {
    let (stream, token) = (Pass(), Pass())
    let answer = response(Open(stream))
    var last = LastToken()
    #expect(last.admission(of: head("/~bad/live/cam/1.m4s"), to: answer, Passes(pass: token), at: 0) == nil)
    stream.isGood.withLock { $0 = false }
    #expect(last.admission(of: head("/~good/live/cam/1.m4s"), to: answer, Passes(pass: token), at: 0) == nil)
  }
}
