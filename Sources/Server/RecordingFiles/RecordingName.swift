package import Base
package import FMP4

/// The name of a recording: a stem with its UTC start (made by `RecordingNaming`), and a number from 2 on where stems are equal.
/// Any other name is no recording and never reaches the file system.
package struct RecordingName: Sendable, Hashable {
  /// `20261121T072410Z`, whatever form the stem uses.
  let start: String
  /// 1 for the first recording of that stem.
  let number: Int
  /// The part before the number: `20261121T072410Z`, `cam_2026-11-21_07-24-10`.
  let base: String

  static let maximumNumber = 9999
  /// Bytes of `base`. A file name has at most 255, and the longest ending is `.part.mp4` after a number.
  static let maximumBase = 200

  package init(start: UTCText, number: Int = 1) {
    self.start = start.compact
    self.number = number
    base = start.compact
  }

  /// From a stem without a number; nil if it contains no start.
  init?(base: String) {
    guard let name = Self(base, ending: ""), name.number == 1 else { return nil }
    self = name
  }

  /// Reads `20261121T072410Z.mp4`, `20261121T072410Z-2.mp4`.
  package init?(finished file: String) {
    self.init(file, ending: Self.finishedEnding)
  }

  /// Reads `20261121T072410Z.part.mp4`, `20261121T072410Z-2.part.mp4`.
  package init?(unfinished file: String) {
    self.init(file, ending: Self.unfinishedEnding)
  }

  /// Reads `20261121T072410Z.jpg`, the thumbnail of a recording.
  package init?(thumbnail file: String) {
    self.init(file, ending: ".jpg")
  }

  private init?(_ file: String, ending: String) {
    guard file.hasSuffix(ending) else { return nil }
    let bytes = Array(file.utf8.dropLast(ending.utf8.count))
    guard bytes.count <= Self.maximumBase + 5, let first = bytes.first, Self.isDigit(first) || Self.isLetter(first),
      bytes.allSatisfy(Self.isAllowed), let time = Self.time(in: bytes)
    else { return nil }
    var end = bytes.count
    var number = 1
    if let hyphen = bytes[time.end...].lastIndex(of: UInt8(ascii: "-")) {
      let digits = bytes[(hyphen + 1)...]
      guard (1...4).contains(digits.count), digits.first != UInt8(ascii: "0"), digits.allSatisfy(Self.isDigit),
        let value = Int(String(decoding: digits, as: UTF8.self)), value >= 2
      else { return nil }
      (number, end) = (value, hyphen)
    }
    guard end <= Self.maximumBase, bytes[time.end..<end].allSatisfy(Self.mayFollowTime) else { return nil }
    self.number = number
    start = time.compact
    base = String(decoding: bytes[..<end], as: UTF8.self)
  }

  package var finished: String { stem + Self.finishedEnding }
  package var unfinished: String { stem + Self.unfinishedEnding }
  /// A copy being made, worthless after a crash.
  package var temporary: String { stem + Self.temporaryEnding }

  package static let temporaryEnding = ".tmp"
  private static let finishedEnding = ".mp4"
  private static let unfinishedEnding = ".part.mp4"

  /// Without an ending, as in replay addresses: `20261121T072410Z-2`.
  package var stem: String { number == 1 ? base : "\(base)-\(number)" }

  /// The file name suggested for a download.
  package func title(of stream: String) -> String { base.hasPrefix(stream) ? stem : "\(stream)-\(stem)" }

  /// The same name with another number.
  func numbered(_ number: Int) -> RecordingName { RecordingName(start: start, number: number, base: base) }

  private init(start: String, number: Int, base: String) {
    self.start = start
    self.number = number
    self.base = base
  }

  /// Nil if the digits are no date.
  package var startTime: WallTime? { UTCText.read(start) }
}

// MARK: The time in a stem

extension RecordingName {
  /// The last time in a stem and where it ends. A time is 4, 2, 2, 2, 2 and 2 digits, with at most one separator between two
  /// fields. `RecordingNaming` puts no digits after it except a number of at most four. That number forms no later time with the
  /// end of this one: the year would be a month and a day.
  private static func time(in bytes: [UInt8]) -> (compact: String, end: Int)? {
    for start in stride(from: bytes.count - 14, through: 0, by: -1) where start == 0 || !isDigit(bytes[start - 1]) {
      if let found = time(in: bytes, at: start) { return found }
    }
    return nil
  }

  private static func time(in bytes: [UInt8], at start: Int) -> (compact: String, end: Int)? {
    var at = start
    var digits: [UInt8] = []
    for (index, count) in [4, 2, 2, 2, 2, 2].enumerated() {
      if index > 0, at < bytes.count, isSeparator(bytes[at]) { at += 1 }
      guard at + count <= bytes.count, bytes[at..<at + count].allSatisfy(isDigit) else { return nil }
      digits += bytes[at..<at + count]
      at += count
    }
    guard at == bytes.count || !isDigit(bytes[at]), digits.starts(with: "19".utf8) || digits[0] >= UInt8(ascii: "2")
    else { return nil }
    let (date, clock) = (String(decoding: digits[..<8], as: UTF8.self), String(decoding: digits[8...], as: UTF8.self))
    return ("\(date)T\(clock)Z", at)
  }

  static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

  private static func isLetter(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
  }

  /// Allowed anywhere in a file name.
  static func isAllowed(_ byte: UInt8) -> Bool {
    isDigit(byte) || isLetter(byte) || ".-_".utf8.contains(byte)
  }

  /// Allowed between the fields of a time.
  static func isSeparator(_ byte: UInt8) -> Bool { "-_.T".utf8.contains(byte) }

  /// Allowed after the time, before the number.
  static func mayFollowTime(_ byte: UInt8) -> Bool { isLetter(byte) || byte == UInt8(ascii: "_") }
}
