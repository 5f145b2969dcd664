/// An encoding that an offer names (`a=rid`, RFC 8851 §4).
struct OfferedEncoding {
  let name: String
  /// The payload types that it keeps to; nil for all.
  private let types: [UInt8]?

  /// Most bytes of a name, which packets carry in the short form of header extensions.
  private static let longestName = 16

  /// Reads the value of an `a=rid`. Nil unless it is sent, by a name of letters and digits.
  init?(_ value: Substring) {
    let words = value.split(separator: " ", maxSplits: 2)
    guard words.count >= 2, words[1] == "send", Self.isName(words[0]) else { return nil }
    name = String(words[0])
    let restrictions = words.count > 2 ? words[2].split(separator: ";") : []
    let list = restrictions.first { $0.hasPrefix("pt=") }
    types = list.map { $0.dropFirst(3).split(separator: ",").prefix(WebRTCLimits.formats).compactMap { UInt8($0) } }
  }

  func allows(_ type: UInt8) -> Bool { types?.contains(type) ?? true }

  /// Reads the value of an `a=simulcast` (RFC 8853 §5.1): the names of each encoding that is sent, the preferred one first. That one
  /// is paused at first (`~`) does not matter.
  static func simulcast(_ value: Substring) -> [[String]] {
    let words = value.split(separator: " ")
    guard let place = words.firstIndex(of: "send"), place + 1 < words.endIndex else { return [] }
    return words[place + 1].split(separator: ";").prefix(WebRTCLimits.offeredEncodings).map { alternatives in
      alternatives.split(separator: ",").prefix(WebRTCLimits.offeredEncodings).map { $0.drop { $0 == "~" } }
        .filter(isName).map { String($0) }
    }
  }

  /// RFC 8851 §10: letters, digits, `-` and `_`.
  private static func isName(_ text: Substring) -> Bool {
    (1...longestName).contains(text.utf8.count)
      && text.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "-"), UInt8(ascii: "_"):
          true
        default: false
        }
      }
  }
}
