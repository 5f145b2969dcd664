import Base
@testable import Settings
import Testing

/// Servers of STUN and TURN, as settings have them and as publishers are told.
@Suite struct ICEServerTextTests {
  @Test func `Each form becomes a link of RFC 9725`() throws {
    let forms = [
      ("stun:stun.example.net", "<stun:stun.example.net>; rel=\"ice-server\""),
      ("STUN:[2001:db8::1]:3478", "<stun:[2001:db8::1]:3478>; rel=\"ice-server\""),
      (
        "turns:ann:p@ss:w@turn.example.net:5349?transport=tcp",
        "<turns:turn.example.net:5349?transport=tcp>; rel=\"ice-server\"; username=\"ann\"; credential=\"p@ss:w\"; "
          + "credential-type=\"password\""
      ),
      (
        "turn:1700000000%3Aann%40example.net:p%25s%22%5C%20w%zz@turn.example.net",
        "<turn:turn.example.net>; rel=\"ice-server\"; username=\"1700000000:ann@example.net\"; "
          + "credential=\"p%s\\\"\\\\ w%zz\"; credential-type=\"password\""
      ),
    ]
    for (text, link) in forms { #expect(try ICEServerText.parse(text).link == link) }
  }

  @Test(arguments: [
    "", "stun", "stun:", "http://x", "stun:a:b@x", "turn:x", "turn:a@x", "turn::b@x", "turn:a:@x", "turn:a:b@",
    "turn:a:b@x:0", "turn:a:b@x:65536", "turn:a:b@x?transport=quic", "stun:x?transport=udp", "turn:a\":b@x",
    "turn:a:b c@x", "turn:a%0D%0A:b@x", "turn:a:%C3%A9@x", "turn:%00:b@x", "stun:x>; rel=y", "stun:[x]", "stun:[::1",
    "stun:x\r\nSet-Cookie:y", "stun:é.example",
  ])
  func `What would be no field, or no server, is refused`(_ text: String) {
    #expect(throws: ValueError.self) { try ICEServerText.parse(text) }
  }

  @Test func `A text of 512 bytes is read, one of 513 is not`() throws {
    let credential = String(repeating: "c", count: 512 - "turn:a:@x".utf8.count)
    #expect(try ICEServerText.parse("turn:a:\(credential)@x").account?.credential == credential)
    #expect(throws: ValueError.self) { try ICEServerText.parse("turn:a:\(credential)c@x") }
  }
}
