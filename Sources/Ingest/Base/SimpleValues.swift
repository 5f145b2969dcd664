/// Whole numbers within a range.
package enum WholeNumber {
  /// - Parameter alternative: a word that is accepted instead of a number, for the advice.
  package static func parse(
    _ text: String, in range: ClosedRange<Int>, orElse alternative: String? = nil
  ) throws(ValueError) -> Int {
    guard let number = Int(text), range.contains(number) else {
      let advice = "use a number from \(range.lowerBound) to \(range.upperBound)"
      throw ValueError(
        "that is not a whole number in range", advice: alternative.map { "\(advice), or \($0)" } ?? advice)
    }
    return number
  }
}

/// One word of a fixed list.
package enum WordList {
  package static func parse<Word: RawRepresentable<String> & CaseIterable>(_ text: String) throws(ValueError) -> Word {
    guard let word = Word(rawValue: text) else {
      let words = Word.allCases.map(\.rawValue).joined(separator: " or ")
      throw ValueError("there is no such choice", advice: "use \(words)")
    }
    return word
  }
}

/// Names of folders: any text that is not empty.
package enum FolderName {
  package static func parse(_ text: String) throws(ValueError) -> String {
    guard !text.isEmpty else { throw ValueError("the folder's name is empty", advice: "name a folder") }
    return text
  }
}

/// The value of an environment variable that stands for a flag without a value.
package enum Switch: Sendable, Hashable {
  case on
  case off

  package static func parse(_ text: String) throws(ValueError) -> Switch {
    switch text.lowercased() {
    case "1", "true", "yes", "on": return .on
    case "0", "false", "no", "off": return .off
    default: throw ValueError("that is neither yes nor no", advice: "use 1 or 0")
    }
  }
}
