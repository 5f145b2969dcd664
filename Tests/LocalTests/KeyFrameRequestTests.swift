@testable import Local
import Support
import Testing

@Suite struct KeyFrameRequestTests {
  private static let shortest = KeyFrameRequest.shortestDistance

  @Test func withoutARequestNothingIsMade() {
    #expect(!KeyFrameRequest().take(now: 0))
  }

  @Test func manyWhoAskGetOneTogether() {
    let requested = KeyFrameRequest()
    for _ in 0..<1000 { requested.ask() }
    #expect(requested.take(now: 7))
    #expect(!requested.take(now: 8))
  }

  @Test func whoComesTooSoonWaitsAndIsNotForgotten() {
    let requested = KeyFrameRequest()
    requested.ask()
    #expect(requested.take(now: 100))
    requested.ask()
    #expect(!requested.take(now: 100 + Self.shortest - 1))
    #expect(requested.take(now: 100 + Self.shortest))
  }

  @Test func askingWithEachFrameMakesTwoASecond() {
    let requested = KeyFrameRequest()
    var made = 0
    for frame in 0..<300 {
      requested.ask()
      if requested.take(now: .at(Int64(frame) * 1_000_000_000 / 30)) { made += 1 }
    }
    #expect(made == 20)
  }
}
