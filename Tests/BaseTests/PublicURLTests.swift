import Base
import Testing

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
    ("https://example.com/weir", "example.com"), ("http://[::1]:8080/weir", "[::1]"),
  ])
  func itsHostHasNoPort(text: String, host: String) throws { #expect(try PublicURL(parsing: text).host == host) }

  @Test(arguments: [
    ("https://Example.com/Media/live-1/", "https://example.com/Media/live-1", "/Media/live-1"),
    ("https://example.com:8443/w.e_ir", "https://example.com:8443/w.e_ir", "/w.e_ir"),
    ("https://example.com/", "https://example.com", ""),
  ])
  func itMayHaveAPath(text: String, expected: String, path: String) throws {
    let url = try PublicURL(parsing: text)
    #expect(url.description == expected && url.path == path)
  }

  @Test func itsPathMayBeSoLong() throws {
    let path = "/" + String(repeating: "b", count: PublicURL.longestPath - 1)
    #expect(try PublicURL(parsing: "https://a\(path)").path == path)
  }

  @Test(arguments: [
    "", "live.example.com", "rtmp://live.example.com", "https://", "https:///", "https://a?b",
    "https://a#b", "https://a/b?c", "https://a/b//c", "https://a//", "https://a/~b", "https://a/..", "https://a/b/./c",
    "https://a/b%20c", "https://a/b c", "https://a/\u{e4}", "https://a/b\"c", "https://a/live", "https://a/web/x",
    "https://a/api",
    "https://a/" + String(repeating: "b", count: PublicURL.longestPath), "https://user:secret@a", "https://a:0",
    "https://a:65536", "https://a:", "https://-a",
    "https://a..b",
    "https://[::1", "https://[1.2.3.4]", "https://::1", "https://a b", "https://a\"b", "https://ä.example",
    "https://a<b>", "https://" + String(repeating: "a", count: 64),
  ])
  func anythingElseIsRefusedWithAdvice(text: String) {
    let error = #expect(throws: ValueError.self) { try PublicURL(parsing: text) }
    #expect(error?.advice.contains("https://live.example.com") == true)
  }
}
