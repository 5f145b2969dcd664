import FMP4
import Testing

struct LanguageCodeTests {
  @Test(arguments: [
    ("en", "eng"), ("eng", "eng"), ("en-US", "eng"), ("DE", "deu"), ("ger", "deu"), ("fre", "fra"), ("zxx", "zxx"),
  ])
  func `Codes of two and three letters become the terminological code`(_ text: String, _ code: String) {
    #expect(LanguageCode.three(text) == code)
  }

  @Test(arguments: ["", "e", "english", "e1", "12", "-en"])
  func `Other texts are no code`(_ text: String) { #expect(LanguageCode.three(text) == nil) }

  @Test func `Players are told the shortest tag`() {
    #expect(["eng", "deu", "fra", "und", "qaa", ""].map(LanguageCode.tag) == ["en", "de", "fr", "und", "qaa", ""])
  }

  @Test func `Each code of two letters leads to its own code and back`() {
    for first in "abcdefghijklmnopqrstuvwxyz" {
      for second in "abcdefghijklmnopqrstuvwxyz" {
        guard let three = LanguageCode.three("\(first)\(second)") else { continue }
        #expect(LanguageCode.tag(three) == "\(first)\(second)")
        #expect(LanguageCode.three(three) == three)
      }
    }
  }
}
