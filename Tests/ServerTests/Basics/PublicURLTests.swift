import Testing

@testable import Basics
@testable import Server

@Suite struct PublicURLTests {
  @Test(arguments: [
    ("https://live.example.com", "https://live.example.com"), ("http://192.0.2.1:8080/", "http://192.0.2.1:8080"),
    ("HTTPS://Live.Example.COM", "https://live.example.com"),
    ("http://[2001:db8::1]:8080", "http://[2001:db8::1]:8080"),
    ("http://localhost", "http://localhost"), ("http://media_server:65535", "http://media_server:65535"),
  ])
  func anOriginIsReadAndWrittenWithoutASlash(text: String, expected: String) throws {
    #expect(try PublicURL(parsing: text).description == expected)
  }

  @Test(arguments: [
    ("https://Live.example.com", "live.example.com"), ("http://192.0.2.1:8080/", "192.0.2.1"),
    ("http://[2001:db8::1]:8080", "[2001:db8::1]"), ("http://weir:80", "weir"),
  ])
  func itsHostHasNoPort(text: String, host: String) throws { #expect(try PublicURL(parsing: text).host == host) }

  @Test(arguments: [
    "", "live.example.com", "rtmp://live.example.com", "https://", "https:///", "https://a/weir", "https://a?b",
    "https://a#b", "https://user:secret@a", "https://a:0", "https://a:65536", "https://a:", "https://-a",
    "https://a..b",
    "https://[::1", "https://[1.2.3.4]", "https://::1", "https://a b", "https://a\"b", "https://ä.example",
    "https://a<b>", "https://" + String(repeating: "a", count: 64),
  ])
  func anythingElseIsRefusedWithAdvice(text: String) {
    let error = #expect(throws: ValueError.self) { try PublicURL(parsing: text) }
    #expect(error?.advice.contains("https://live.example.com") == true)
  }
}
