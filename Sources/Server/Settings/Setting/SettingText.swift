internal import Base

/// The form of a setting's text, and how it is parsed.
struct SettingText<Value: Sendable>: Sendable {
  /// Its name in the help text: `duration`, `auto|manual`.
  let form: String
  let values: SettingValues
  let parse: @Sendable (String) throws(ValueError) -> Value

  init(
    _ form: String, values: SettingValues = .text,
    _ parse: @escaping @Sendable (String) throws(ValueError) -> Value
  ) {
    (self.form, self.values, self.parse) = (form, values, parse)
  }
}

/// What texts a setting takes, as far as a schema can say it.
package enum SettingValues: Sendable, Hashable {
  case text
  /// Texts that match a regular expression of ECMA-262. `orNumber`: whole numbers, too.
  case pattern(String, orNumber: Bool = false)
  case wholeNumber(ClosedRange<Int>)
  case words([String])

  static let duration = pattern(#"^[0-9]+(\.[0-9]{1,9})?(ms|s|m|min|h|d)$"#)
  static let size = pattern(#"^(0|[0-9]+(\.[0-9]{1,9})?([bB]|[kKmMgGtT][iI]?[bB]|[kKmMgGtT]))$"#)
}

extension SettingText<Duration> {
  static func duration(_ range: ClosedRange<Duration>) -> Self {
    Self("duration", values: .duration) { text throws(ValueError) in
      let duration = try DurationText.parse(text)
      guard range.contains(duration) else {
        let (least, most) = (DurationText.text(range.lowerBound), DurationText.text(range.upperBound))
        throw ValueError("it is outside \(least) to \(most)", advice: "choose a duration in that range")
      }
      return duration
    }
  }
}

extension SettingText<Int> {
  static func count(_ range: ClosedRange<Int>) -> Self {
    Self("count", values: .wholeNumber(range)) { text throws(ValueError) in try WholeNumber.parse(text, in: range) }
  }
}

extension SettingText<Int64> {
  /// Bytes.
  static var size: Self { Self("size", values: .size, ByteSizeText.parse) }

  /// Nanoseconds.
  static func nanoseconds(_ range: ClosedRange<Duration>) -> Self {
    let text = SettingText<Duration>.duration(range)
    return Self(text.form, values: .duration) { given throws(ValueError) in
      try text.parse(given).wholeMilliseconds * 1_000_000
    }
  }
}

extension SettingText<String> {
  static var folder: Self { Self("folder", FolderName.parse) }
  static var file: Self { Self("file") { $0 } }
}

extension String {
  /// The parts between commas.
  var commaSeparated: [String] { split(separator: ",").map(String.init) }
}

extension SettingText where Value: RawRepresentable<String> & CaseIterable {
  static var word: Self {
    let words = Value.allCases.map(\.rawValue)
    return Self(words.joined(separator: "|"), values: .words(words), WordList.parse)
  }
}
