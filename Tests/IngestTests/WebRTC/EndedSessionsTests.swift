import Support
import Testing

@testable import Ingest

@Suite struct EndedSessionsTests {
  @Test func `A reason is kept for a while`() {
    var ended = EndedSessions()
    ended.add("one", because: "too slow", now: 5)
    #expect(ended.reason(of: "one", now: .at(4 + WebRTCLimits.endKept)) == "too slow")
    #expect(ended.reason(of: "one", now: .at(5 + WebRTCLimits.endKept)) == nil)
    #expect(ended.reason(of: "other", now: 6) == nil)
  }

  @Test func `Of so many sessions, the newest`() {
    var ended = EndedSessions()
    for number in 0...WebRTCLimits.endsKept { ended.add("\(number)", because: "\(number)", now: 1) }
    #expect(ended.reason(of: "0", now: 2) == nil)
    #expect(ended.reason(of: "1", now: 2) == "1")
    #expect(ended.reason(of: "\(WebRTCLimits.endsKept)", now: 2) != nil)
  }
}
