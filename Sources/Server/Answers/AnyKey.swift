/// A key of coding by its name alone, for members that no type lists.
package struct AnyKey: CodingKey {
  package let stringValue: String
  package let intValue: Int? = nil
  package init(stringValue: String) { self.stringValue = stringValue }
  package init?(intValue: Int) { nil }
}
