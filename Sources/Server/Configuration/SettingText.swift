internal import Basics

/// The form of a setting's text, and how it is parsed.
struct SettingText<Value: Sendable>: Sendable {
  /// Its name in the help text: `duration`, `auto|manual`.
  let form: String
  let parse: @Sendable (String) throws(ValueError) -> Value

  init(_ form: String, _ parse: @escaping @Sendable (String) throws(ValueError) -> Value) {
    (self.form, self.parse) = (form, parse)
  }
}

extension SettingText<Duration> {
  static func duration(_ range: ClosedRange<Duration>) -> Self {
    Self("duration") { text throws(ValueError) in
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
    Self("count") { text throws(ValueError) in try WholeNumber.parse(text, in: range) }
  }
}

extension SettingText<Int64> {
  /// Bytes.
  static var size: Self { Self("size", ByteSizeText.parse) }

  /// Nanoseconds.
  static func nanoseconds(_ range: ClosedRange<Duration>) -> Self {
    let text = SettingText<Duration>.duration(range)
    return Self(text.form) { given throws(ValueError) in try text.parse(given).wholeMilliseconds * 1_000_000 }
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
  static var word: Self { Self(Value.allCases.map(\.rawValue).joined(separator: "|"), WordList.parse) }
}
