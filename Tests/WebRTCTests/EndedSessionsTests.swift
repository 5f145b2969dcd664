import Base
import Publishing
import Support
import Testing
@testable import WebRTC

@Suite struct EndedSessionsTests {
  private let stream: StreamName
  private var ended = EndedSessions()

  init() throws { stream = try #require(StreamName("cam")) }

  private mutating func add(_ session: String, now: MonotonicTime) {
    ended.add(session, of: stream, .publishing, because: "of \(session)", now: now)
  }

  private func reason(of session: String, now: MonotonicTime) -> String? {
    ended.reason(of: session, of: stream, .publishing, now: now)
  }

  @Test mutating func `A reason is kept for a while, for those who came for the same`() throws {
    add("one", now: 5)
    #expect(reason(of: "one", now: .at(4 + WebRTCLimits.endKept)) == "of one")
    #expect(reason(of: "one", now: .at(5 + WebRTCLimits.endKept)) == nil)
    #expect(reason(of: "other", now: 6) == nil)
    let other = try #require(StreamName("other"))
    #expect(ended.reason(of: "one", of: other, .publishing, now: 6) == nil)
    #expect(ended.reason(of: "one", of: stream, .watching, now: 6) == nil)
  }

  @Test mutating func `Of so many sessions, the newest`() {
    for number in 0...WebRTCLimits.endsKept { add("\(number)", now: 1) }
    #expect(reason(of: "0", now: 2) == nil)
    #expect(reason(of: "1", now: 2) == "of 1")
    #expect(reason(of: "\(WebRTCLimits.endsKept)", now: 2) != nil)
  }
}
