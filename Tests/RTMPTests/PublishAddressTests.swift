import Base
import Publishing
@testable import RTMP
import Testing

@Suite("Where a publisher wants to go")
struct PublishAddressTests {
  private func stream(_ text: String, in application: String = "live") -> (name: StreamName, key: Secret?)? {
    try? PublishAddress.stream(of: text, in: application)
  }

  @Test(arguments: [
    ("cam", ""), ("live/cam", ""), ("LIVE", "cam"), ("Live/cam", ""), ("", "cam"), ("", "live/cam"), ("", "/cam/"),
    ("live", "live/cam"), ("live/_definst_", "cam"), ("live/_definst_/cam", ""), ("live", "_definst_/cam"),
    ("", "live/_definst_/cam"), ("_definst_", "cam"), ("live//cam", ""), ("live", "cam?key=SECRET"),
  ])
  func `Application and stream name are one path`(_ application: String, _ text: String) throws {
    try PublishAddress.check(application: application)
    #expect(stream(text, in: application)?.name.description == "cam")
  }

  @Test func `A stream may have the name of the application`() {
    #expect(stream("live", in: "")?.name.description == "live")
    #expect(stream("live", in: "live")?.name.description == "live")
    #expect(stream("", in: "live") == nil && stream("", in: "") == nil && stream("?key=x", in: "live/_definst_") == nil)
  }

  @Test func `What leads nowhere says which field to change`() {
    for (application, text, beginning) in [
      ("vod", "cam", "application \"vod\" is unknown"), ("live/vod", "cam", "application \"live/vod\" is unknown"),
      ("live", "", "no stream name came"), ("", "?key=SECRET", "no stream name came"),
      ("live", "a/b", "stream name \"a/b\" is not possible"),
      ("", "a b?key=SECRET", "stream name \"a b\" is not possible"),
      // The rest of a key with a slash, as ffmpeg divides it, is not shown.
      ("live/cam", "SECRET", "application \"live/cam\" is unknown"),
    ] {
      let error = #expect(throws: WireError.self) { try PublishAddress.stream(of: text, in: application) }
      #expect(error?.reason.hasPrefix(beginning) == true && error?.reason.contains("SECRET") == false)
    }
    for application in ["a/b", "live/a/b", "live/a b", "vod/_definst_"] {
      let error = #expect(throws: WireError.self) { try PublishAddress.check(application: application) }
      #expect(error?.reason.contains("server rtmp://HOST/live, stream key NAME") == true)
    }
  }

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
    #expect(stream(text)?.name.description == name)
  }

  @Test(arguments: ["", "/", "?key=x", "a/b", "..", ".cam", "ca m", "cäm", "cam\0", String(repeating: "a", count: 65)])
  func `What is no name is no stream`(_ text: String) {
    #expect(stream(text) == nil)
  }

  @Test(arguments: [
    ("cam?key=SECRET", "SECRET"), ("cam?a=1&key=SECRET&b", "SECRET"), ("cam?key=a&key=b", "a"),
    ("cam?key=%53E%43ret", "SECret"), ("cam?key=%", "%"), ("cam?key=%4", "%4"), ("cam?key=%zz%41", "%zzA"),
    ("cam?key=%c3%BC", "ü"), ("cam?key=a=b?c", "a=b?c"), ("cam?key=", ""), ("cam?key=a+b", "a+b"),
  ])
  func `A key is found in the query, its escapes undone`(_ text: String, _ key: String) throws {
    let expected = Secret(key)
    #expect(try #require(stream(text)?.key).matches(expected))
    #expect(try #require(PublishAddress.application(of: text).key).matches(expected))
    #expect(try #require(PublishAddress.key(ofURL: "rtmp://host/live/\(text)")).matches(expected))
  }

  @Test(arguments: ["cam", "cam?", "cam?Key=x", "cam?a=key=x", "cam?keys=x", "key=x"])
  func `Where no key stands there is none`(_ text: String) {
    #expect(PublishAddress.key(ofURL: text) == nil)
  }

  @Test func `Nothing of a key is printed`() throws {
    let (name, key) = try #require(stream("cam?key=SECRET"))
    let secret = try #require(key)
    #expect("\(name) \(secret) \(String(reflecting: secret))" == "cam *** ***")
    #expect(PublishAddress.printable("cam?key=SECRET") == "cam")
    #expect(PublishAddress.printable("a\u{1B}[31m\"b\n") == "a?[31m?b?")
    let long = PublishAddress.printable(String(repeating: "x", count: 500))
    #expect(long == String(repeating: "x", count: RTMPLimits.printedNameBytes) + "…")
  }
}
