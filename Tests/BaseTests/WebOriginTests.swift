import Base
import Testing

@Suite struct WebOriginTests {
  @Test(arguments: [
    ("https://player.example", "https://player.example"), ("HTTPS://Player.Example", "https://player.example"),
    ("https://player.example:443", "https://player.example"), ("http://player.example:80", "http://player.example"),
    ("https://player.example:80", "https://player.example:80"), ("http://localhost:3000", "http://localhost:3000"),
    ("http://[::1]:8080", "http://[::1]:8080"), ("*", "*"),
  ])
  func anOriginIsWrittenAsBrowsersSendIt(text: String, origin: String) throws {
    #expect(try WebOrigin.parse(text) == origin)
  }

  @Test(arguments: [
    "", "player.example", "https://", "https://player.example/", "https://player.example/a",
    "https://player.example/a/b", "https://*.example", "**",
    "https://a.example;default-src", "https://a.example b", "https://a.example\r\nX: y", "https://a.example\"",
    "https://u@a.example",
    "https://a.example:0", "https://a.example:65536", "null", "ftp://a.example", "https://\u{e4}.example",
  ])
  func whatCouldReachBeyondAFieldIsRefused(text: String) {
    #expect(throws: ValueError.self) { try WebOrigin.parse(text) }
  }
}
