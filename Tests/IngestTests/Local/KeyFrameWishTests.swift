import Testing

@testable import Ingest

@Suite struct KeyFrameWishTests {
  private static let shortest = KeyFrameWish.shortestDistance

  @Test func nobodyAskedNothingIsMade() {
    #expect(!KeyFrameWish().take(now: 0))
  }

  @Test func manyWhoAskGetOneTogether() {
    let wish = KeyFrameWish()
    for _ in 0..<1000 { wish.ask() }
    #expect(wish.take(now: 7))
    #expect(!wish.take(now: 8))
  }

  @Test func whoComesTooSoonWaitsAndIsNotForgotten() {
    let wish = KeyFrameWish()
    wish.ask()
    #expect(wish.take(now: 100))
    wish.ask()
    #expect(!wish.take(now: 100 + Self.shortest - 1))
    #expect(wish.take(now: 100 + Self.shortest))
  }

  @Test func askingWithEachPictureMakesTwoASecond() {
    let wish = KeyFrameWish()
    var made = 0
    for picture in 0..<300 {
      wish.ask()
      if wish.take(now: Int64(picture) * 1_000_000_000 / 30) { made += 1 }
    }
    #expect(made == 20)
  }
}
