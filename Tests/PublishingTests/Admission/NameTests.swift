import Base
import Publishing
import Testing

@Suite("StreamName, NamePattern, Secret and PercentDecoding")
struct NameTests {
  @Test(arguments: ["a", "A9", "cam.1_b-c", String(repeating: "x", count: 64)])
  func `A name of 1 to 64 letters is one`(_ text: String) { #expect(StreamName(text)?.description == text) }

  @Test(arguments: [
    "", ".cam", "-cam", "_cam", "a/b", "a b", "a%20b", "ä", "a\0", "cam\n", String(repeating: "x", count: 65),
  ])
  func `Other text is no name`(_ text: String) { #expect(StreamName(text) == nil) }

  @Test(arguments: [
    ("*", "cam", true), ("cam", "cam", true), ("cam", "cam2", false), ("cam*", "cam", true), ("cam*", "camera", true),
    ("*cam", "webcam", true), ("*cam", "camera", false), ("a*b*c", "aXbYc", true), ("a*b*c", "abc", true),
    ("a*b*c", "acb", false), ("aa*aa", "aaa", false), ("*a*a*", "bab", false), ("**", "x", true), ("", "x", false),
  ])
  func `A star stands for any letters or none`(_ pattern: String, _ name: String, _ matches: Bool) throws {
    #expect(NamePattern(pattern).matches(try #require(StreamName(name))) == matches)
  }

  @Test func `A pattern of many stars is decided at once`() throws {
    let pattern = NamePattern(String(repeating: "*a", count: 32) + "*b")
    let began = ContinuousClock.now
    #expect(!pattern.matches(try #require(StreamName(String(repeating: "a", count: 64)))))
    #expect(ContinuousClock.now - began < .seconds(1))
  }

  @Test func `A secret shows nothing of itself and equals only the same text`() throws {
    let secret = Secret("sesame")
    #expect("\(secret)" == "***" && String(reflecting: secret) == "***" && Mirror(reflecting: secret).children.isEmpty)
    #expect(secret == Secret("sesame") && secret != Secret("sesam") && secret != Secret(""))
    let stored = try #require(Secret(hex: secret.hex))
    #expect(stored == secret && stored.text == nil && stored.length == nil)
    #expect(secret.hex.count == 64)
  }

  @Test(arguments: ["", "ab", String(repeating: "g", count: 64), String(repeating: "a", count: 63)])
  func `What is no SHA-256 in hexadecimal is no secret`(_ text: String) { #expect(Secret(hex: text) == nil) }

  @Test(arguments: [
    ("a%41b", "aAb"), ("%c3%A4", "ä"), ("100%", "100%"), ("%4", "%4"), ("%zz%20", "%zz "), ("%%41", "%A"), ("", ""),
  ])
  func `Escapes are decoded, and what is none stays`(_ text: String, _ decoded: String) {
    #expect(text.percentDecoded == decoded)
  }
}
