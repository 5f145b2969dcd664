import Base
import Testing

@Suite struct MarkupTextTests {
  @Test func markupStaysText() {
    #expect(
      MarkupText.escaped(#"</title><a href="x" b='y'>&amp;"#)
        == "&lt;/title&gt;&lt;a href=&quot;x&quot; b=&#39;y&#39;&gt;&amp;amp;")
  }

  @Test func charactersThatTurnTheTextBehindThemAreLeftOut() {
    #expect(MarkupText.plain("a\u{202E}b\u{2066}c\u{2069}\u{7}d") == "abcd")
    // Marks of direction, scripts from right to left, and joined emoji are text.
    for text in ["\u{5E9}\u{5DC}\u{5D5}\u{5DD}", "\u{200F}x\u{61C}", "\u{1F468}\u{200D}\u{1F469}"] {
      #expect(MarkupText.plain(text) == text)
    }
  }
}
