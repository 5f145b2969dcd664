import Base
@testable import HTTP
import NIOCore
import Testing

@Suite struct LastClientTests {
  private func fields(_ text: String) -> RequestFields { RequestFields(ByteBuffer(string: text), .userAgent) }

  private func client(_ fields: RequestFields) -> ClientID { ClientID(nil, fields) }

  @Test func theSameFieldsAreReadOnce() {
    var last = LastClient()
    var reads = 0
    for _ in 0..<3 {
      let phone = fields("Host: x\r\nUser-Agent: phone\r\n")
      let found = last.client(with: phone) {
        reads += 1
        return client(phone)
      }
      #expect(found == client(phone))
    }
    #expect(reads == 1)
  }

  @Test func otherFieldsAreAnotherClientAlsoOfTheSameLength() {
    var last = LastClient()
    let (phone, radio) = (fields("User-Agent: phone\r\n"), fields("User-Agent: radio\r\n"))
    #expect(last.client(with: phone) { client(phone) } == client(phone))
    #expect(last.client(with: radio) { client(radio) } == client(radio))
    #expect(client(phone) != client(radio))
    // A proxy's connection carries requests of several clients.
    let first = fields("X-Forwarded-For: 192.0.2.1\r\nUser-Agent: phone\r\n")
    let second = fields("X-Forwarded-For: 192.0.2.2\r\nUser-Agent: phone\r\n")
    var reads = 0
    for one in [first, second, first] {
      _ = last.client(with: one) {
        reads += 1; return client(one)
      }
    }
    #expect(reads == 3)
  }

  @Test func longFieldsAreNotKept() {
    var last = LastClient()
    for (length, expected) in [(LastClient.longestFields, 1), (LastClient.longestFields + 1, 2)] {
      let long = fields("User-Agent: " + String(repeating: "x", count: length - 14) + "\r\n")
      var reads = 0
      for _ in 0..<2 {
        _ = last.client(with: long) {
          reads += 1; return client(long)
        }
      }
      #expect(reads == expected)
    }
  }
}
