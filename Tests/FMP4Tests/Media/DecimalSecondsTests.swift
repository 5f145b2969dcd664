import FMP4
import Testing

@Suite struct DecimalSecondsTests {
  /// A file may say anything of its length.
  @Test(arguments: [
    (0.25, "0.3"), (-1.04, "-1.0"), (59.96, "60.0"), (.nan, "0.0"), (.infinity, "1000000000.0"),
    (-1e300, "-1000000000.0"),
  ])
  func anyLengthIsText(_ seconds: Double, _ text: String) {
    #expect(Decimals.fixed(seconds: seconds, digits: 1) == text)
  }
}
