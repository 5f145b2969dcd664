import Answers
import HTTP
import NIOCore
import NIOHTTP1
import Storage
import Testing

@Suite struct AnswerTests {
  private struct Sample: Encodable {
    let name: String
    let count: Int?
    let bytes: Int64?
    let ratio: Double?
    let inner: [String: String]?
    let list: [Int]
  }

  private func text(_ answer: some Encodable) -> String { String(buffer: JSONText.encode(answer)) }

  @Test func whatIsUnknownIsNullAndThere() {
    #expect(
      text(Sample(name: "a/b", count: nil, bytes: nil, ratio: nil, inner: nil, list: []))
        == #"{"bytes":null,"count":null,"inner":null,"list":[],"name":"a/b","ratio":null}"#)
    #expect(
      text(Sample(name: "", count: -3, bytes: 1 << 60, ratio: 0.5, inner: ["x": "y"], list: [1, 2]))
        == #"{"bytes":1152921504606846976,"count":-3,"inner":{"x":"y"},"list":[1,2],"name":"","ratio":0.5}"#)
    #expect(text(Sample?.none) == "null")
  }

  @Test func stringsAreEscaped() {
    #expect(text(["a\"b\\c\n\u{1}é"]) == #"["a\"b\\c\n\u0001é"]"#)
  }
}
