@testable import HTTP
import NIOCore
import NIOEmbedded
import Storage
import Testing

@Suite struct PollLimitTests {
  private let loop = EmbeddedEventLoop()

  private final class IdleMember: LoopContext.Member {
    func tick() {}
  }

  private func playlist() -> HTTPResponse {
    HTTPResponse(PreencodedResponse(type: .hls, cache: .livePlaylist, body: ByteBuffer(string: "#EXTM3U")))
  }

  private let media = HTTPResponse.media(
    [.bytes(ByteBuffer(string: "moof"))], type: .mp4, cache: .immutable, entityTag: "\"1\"")

  /// A limit of `rate` a second on a loop whose ticks run; they end with `member`.
  private func limit(_ rate: Int) -> (PollLimit, LoopContext, IdleMember) {
    let context = LoopContext(eventLoop: loop, interval: .milliseconds(250)) { 0 }
    let member = IdleMember()
    context.add(member)
    return (PollLimit(repeatsPerSecond: rate, loop: context), context, member)
  }

  /// How many of `count` rounds of these answers are refused.
  private func refused(_ limit: inout PollLimit, _ count: Int, _ answers: () -> [HTTPResponse]) -> Int {
    var refused = 0
    for _ in 0..<count {
      for answer in answers() where limit.isExceeded(by: answer.playlist) { refused += 1 }
    }
    return refused
  }

  @Test func theSamePlaylistMayBeAskedForSoOftenASecond() {
    var (limit, context, member) = self.limit(20)
    let same = playlist()
    // The first is no repeat.
    #expect(refused(&limit, 101) { [same] } == 80)
    loop.advanceTime(by: .seconds(1))
    #expect(refused(&limit, 100) { [same] } == 80)
    context.remove(member)
  }

  @Test func aPlaylistThatChangesAndMediaInBetweenCostNothing() {
    var (limit, context, member) = self.limit(20)
    #expect(refused(&limit, 1000) { [playlist()] } == 0)
    // Many players on the one connection of a proxy: each takes the playlist and a segment.
    let same = playlist()
    #expect(refused(&limit, 1000) { [same, same, same, media] } == 0)
    context.remove(member)
  }

  @Test func whoGoesRoundAFewUnchangedPlaylistsIsAPollerToo() {
    var (limit, context, member) = self.limit(20)
    let some = (0..<6).map { _ in playlist() }
    #expect(refused(&limit, 100) { some } == 600 - 6 - 20)
    context.remove(member)
  }

  @Test func noLimitIsNone() {
    var (limit, context, member) = self.limit(0)
    let same = playlist()
    #expect(refused(&limit, 1000) { [same] } == 0)
    context.remove(member)
  }
}
