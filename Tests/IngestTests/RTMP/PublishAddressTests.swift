import Testing

@testable import Ingest

@Suite("Where a publisher wants to go")
struct PublishAddressTests {
  @Test(arguments: [
    ("live", "live"), ("live/", "live"), ("/live//", "live"), ("live?key=x", "live"), ("live/?key=x", "live"),
    ("a/b", "a/b"), ("", ""), ("///", ""), ("?live", ""),
  ])
  func `An application is what stands before its query, without slashes around it`(_ text: String, _ name: String) {
    #expect(PublishAddress.application(of: text).name == name)
  }

  @Test(arguments: [
    ("cam", "cam"), ("/cam", "cam"), ("cam/", "cam"), ("cam?key=x", "cam"), ("cam.main_1-a", "cam.main_1-a"),
  ])
  func `A stream is a name that fits`(_ text: String, _ name: String) {
    #expect(PublishAddress.stream(of: text)?.name.description == name)
  }

  @Test(arguments: ["", "/", "?key=x", "a/b", "..", ".cam", "ca m", "cäm", "cam\0", String(repeating: "a", count: 65)])
  func `What is no name is no stream`(_ text: String) {
    #expect(PublishAddress.stream(of: text) == nil)
  }

  @Test(arguments: [
    ("cam?key=SECRET", "SECRET"), ("cam?a=1&key=SECRET&b", "SECRET"), ("cam?key=a&key=b", "a"),
    ("cam?key=%53E%43ret", "SECret"), ("cam?key=%", "%"), ("cam?key=%4", "%4"), ("cam?key=%zz%41", "%zzA"),
    ("cam?key=%c3%BC", "ü"), ("cam?key=a=b?c", "a=b?c"), ("cam?key=", ""), ("cam?key=a+b", "a+b"),
  ])
  func `A key is found in the query, its escapes undone`(_ text: String, _ key: String) throws {
    let expected = Secret(key)
    #expect(try #require(PublishAddress.stream(of: text)?.key).matches(expected))
    #expect(try #require(PublishAddress.application(of: text).key).matches(expected))
    #expect(try #require(PublishAddress.key(ofURL: "rtmp://host/live/\(text)")).matches(expected))
  }

  @Test(arguments: ["cam", "cam?", "cam?Key=x", "cam?a=key=x", "cam?keys=x", "key=x"])
  func `Where no key stands there is none`(_ text: String) {
    #expect(PublishAddress.key(ofURL: text) == nil)
  }

  @Test func `Nothing of a key is printed`() throws {
    let (name, key) = try #require(PublishAddress.stream(of: "cam?key=SECRET"))
    let secret = try #require(key)
    #expect("\(name) \(secret) \(String(reflecting: secret))" == "cam *** ***")
    #expect(PublishAddress.printable("cam?key=SECRET") == "cam")
    #expect(PublishAddress.printable("a\u{1B}[31m\"b\n") == "a?[31m?b?")
    let long = PublishAddress.printable(String(repeating: "x", count: 500))
    #expect(long == String(repeating: "x", count: RTMPLimits.printedNameBytes) + "…")
  }
}
