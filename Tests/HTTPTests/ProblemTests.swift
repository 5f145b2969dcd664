import HTTP
import NIOCore
import NIOHTTP1
import Storage
import Testing

@Suite struct ProblemTests {
  @Test func aProblemSaysWhatAndWhy() throws {
    let kind = ProblemKind("not-there", .notFound, "Not \"found\"", "It is not there.")
    let problem = Problem(kind, "a\nb", help: "See \\ /api/v1.")
    guard case .pieces(let pieces) = problem.response.body, case .bytes(let bytes)? = pieces.first else {
      Issue.record("no body")
      return
    }
    #expect(
      String(buffer: bytes)
        == #"{"type":"about:blank","status":404,"code":"not-there","title":"Not \"found\"","detail":"a\u000ab","help":"See \\ /api/v1."}"#
    )
  }
}
