/// Why the text of one value is not usable. The loader puts the origin and the value before it.
struct ValueError: Error, Sendable, Hashable {
  /// What is wrong with it.
  var reason: String
  /// What to write instead.
  var advice: String

  init(_ reason: String, advice: String) {
    self.reason = reason
    self.advice = advice
  }
}
