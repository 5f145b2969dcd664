import Base
@testable import Answers
import Testing

@Suite struct SchemaBookTests {
  @Test func aSchemaFollowsFromTheMembersOfAType() throws {
    let book = SchemaBook()
    _ = book.schema(of: DescribedThing.self)
    #expect(book.schemas.keys.sorted() == ["DescribedThing", "DescribedThingPart"])
    let text = try #require(book.schemas["DescribedThing"]).text(depth: 0)
    #expect(text.contains(#""required": ["name", "count", "parts", "sizes"]"#))
    #expect(text.contains(#""enum": ["a", "b"]"#))
    #expect(
      text.split(separator: "\n").map { $0.trimmed }.joined().contains(
        #""count": {"anyOf": [{"type": "integer"}, {"type": "null"}]}"#))
    let part = try #require(book.schemas["DescribedThingPart"]).text(depth: 0)
    #expect(part.contains(#""type": "number""#) && part.contains(#""type": "boolean""#) && part.contains("null"))
  }
}

struct DescribedThing: APIObject {
  let name: String
  let count: Int?
  let parts: [Part]
  let sizes: [String: Int64]

  struct Part: APIObject {
    let ratio: Double
    let isWhole: Bool?
  }

  static let notes: [String: FieldNote] = ["name": .words(["a", "b"], "Its name.")]
}

extension Substring {
  fileprivate var trimmed: Substring { drop { $0 == " " } }
}
