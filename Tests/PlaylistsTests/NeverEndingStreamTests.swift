import FMP4
import HTTP
import NIOCore
@testable import Playlists
@testable import Streams
import StreamSupport
import Support
import Testing

/// A stream that nothing ends: half a year, and a publication of some seconds every nine hours.
@Suite struct NeverEndingStreamTests {
  private static let returns = 500
  private static let pause: Int64 = 180 * 86_400 * 1_000_000_000 / Int64(returns)

  @Test func whatIsKeptAndListedDoesNotGrowWithTheYears() throws {
    var driver = EpochDriver()
    var history = DASHHistory()
    var sizes: [(bytes: Int, list: Int, manifest: Int, periods: Int)] = []
    var (wall, last) = (EpochDriver.wall, 0)
    for round in 0..<Self.returns {
      try driver.publish(seconds: 4, wall: wall)
      try driver.interrupt()
      let listed = driver.epoch.window.listed.map(\.sequenceNumber)
      let newest = try #require(listed.last)
      #expect(newest > last && zip(listed, listed.dropFirst()).allSatisfy { $1 == $0 + 1 })
      last = newest
      // A second later the list says that nobody is there.
      let isTold = driver.epoch.beginOutage()
      #expect(isTold)
      wall = wall &+ Self.pause
      guard round % 50 == 49 else { continue }
      let manifest = String(buffer: history.manifest(of: driver.epoch.view, at: wall).body)
      sizes.append(
        (
          driver.epoch.heldBytes, HLSMediaPlaylist(window: driver.epoch.window).render().readableBytes,
          manifest.utf8.count, try XMLText.parse(manifest).all("Period").count
        ))
    }
    #expect(driver.epoch.window.inits.count == 1)
    let (first, end) = (try #require(sizes.first), try #require(sizes.last))
    #expect(end.bytes <= first.bytes + first.bytes / 10, "\(sizes)")
    #expect(end.list <= first.list + first.list / 10 && end.list < 20_000, "\(sizes)")
    #expect(end.manifest <= first.manifest + first.manifest / 10 && end.manifest < 60_000, "\(sizes)")
    #expect(end.periods <= first.periods, "\(sizes)")
  }
}
