/// Why the text of a value is invalid. The configuration loader puts the origin and the value before it.
package struct ValueError: Error, Sendable, Hashable {
  /// What is wrong with the value.
  package var reason: String
  /// What to write instead.
  package var advice: String

  package init(_ reason: String, advice: String) {
    self.reason = reason
    self.advice = advice
  }
}
