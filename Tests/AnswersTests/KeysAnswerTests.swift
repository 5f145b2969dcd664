import Answers
@testable import Control
import FMP4
import NIOCore
import Publishing
import Support
import Testing

@Suite struct KeysAnswerTests {
  private let now = WallTime.at(1_795_245_850_123_000_000)

  private func key(_ name: String, _ text: String, publish: [String]) throws -> AccessKey {
    var grant = AccessGrant(name: name)
    grant.streams[.publish] = try publish.map { try StreamPattern(parsing: $0) }
    return AccessKey(grant: grant, secret: Secret(text), madeAt: now)
  }

  @Test func aHundredThousandKeysCostARequestLittle() throws {
    let ring = KeyRing()
    let all = try (0..<ControlDatabase.keyLimit).map { try key("key-\($0)", "text-\($0)", publish: ["cam-\($0)"]) }
    let clock = ContinuousClock()
    let restoring = clock.measure { ring.restore(all) }
    #expect(!ring.add(try key("one-more", "one-more", publish: ["x"])))
    var bytes = 0
    let last = all[all.count - 1].grant.name
    let pages = clock.measure {
      for after in [nil, "key-5", last] {
        bytes = max(bytes, JSONText.encode(KeysAnswer(ring.page(after: after, limit: 100), now: now)).readableBytes)
      }
    }
    let lookups = clock.measure {
      for number in 0..<10_000 { #expect(ring.grant(of: Secret("text-\(number * 10)")) != nil) }
    }
    let changes = clock.measure {
      for number in 0..<1000 {
        #expect(ring.remove("key-\(number * 100)") && ring.add(all[number * 100]))
      }
    }
    #expect(bytes < 32 << 10, "\(bytes)")
    // A sort of all of them for each page takes longer than all of this.
    #expect(pages < .milliseconds(500) && changes < .seconds(5), "\(restoring) \(pages) \(lookups) \(changes)")
    #expect(restoring < .seconds(20) && lookups < .seconds(5), "\(restoring) \(lookups)")
  }
}
