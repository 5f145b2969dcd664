package import Base
package import FMP4
internal import Local

/// Parses the values of source options: `size=1280x720`, `bitrate=2.5M`.
package enum OptionValues {
  static func size(_ text: String) throws(ValueError) -> CameraSettings.Size {
    let sides = text.split(separator: "x", omittingEmptySubsequences: false).map { Int($0) }
    guard sides.count == 2, let width = sides[0], let height = sides[1], (16...8192).contains(width),
      (16...8192).contains(height)
    else { throw ValueError("size=\(text) is not a size", advice: "write size=1280x720, sides from 16 to 8192") }
    return CameraSettings.Size(width: width, height: height)
  }

  /// `90`, `mirrored`, `mirrored-90`.
  package static func rotation(_ text: String) throws(ValueError) -> Rotation {
    guard let rotation = Rotation.allCases.first(where: { $0.description == text }) else {
      let words = Rotation.allCases.map(\.description).joined(separator: ", ")
      throw ValueError("rotate=\(text) is unknown", advice: "use one of \(words)")
    }
    return rotation
  }

  /// `30`, `29.97` or `30000/1001`.
  static func frameRate(_ text: String) throws(ValueError) -> FrameRate {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    let exact = parts.count == 2 ? UInt32(parts[0]).flatMap { n in UInt32(parts[1]).map { (n, $0) } } : nil
    if let (numerator, denominator) = exact,
      let rate = FrameRate(numerator: numerator, denominator: denominator), (1.0...300.0).contains(rate.framesPerSecond)
    {
      return rate
    }
    if parts.count == 1, let number = Double(text), (1.0...300.0).contains(number) {
      let common = FrameRate(numerator: UInt32((number * 1.001).rounded()) * 1000, denominator: 1001)
      if let common, abs(common.framesPerSecond - number) < 0.006, number != number.rounded() { return common }
      if let rate = FrameRate(numerator: UInt32((number * 1000).rounded()), denominator: 1000) { return rate }
    }
    throw ValueError(
      "fps=\(text) is not a frame rate", advice: "write fps=30, fps=29.97 or fps=30000/1001, from 1 to 300")
  }

  /// `2500000`, `2500k` or `2.5M` bits per second.
  package static func bitRate(_ text: String, _ range: ClosedRange<Int>) throws(ValueError) -> Int {
    let units: [Character: Double] = ["k": 1e3, "K": 1e3, "M": 1e6]
    let unit = text.last.flatMap { units[$0] }
    let number = Double(unit == nil ? text[...] : text.dropLast()).map { $0 * (unit ?? 1) }
    guard let number, (Double(range.lowerBound)...Double(range.upperBound)).contains(number) else {
      throw ValueError(
        "bitrate=\(text) is not a bit rate from \(range.lowerBound / 1000)k to \(range.upperBound / 1000)k",
        advice: "write bitrate=2500k or bitrate=2.5M")
    }
    return Int(number)
  }

  static func number(_ name: String, _ text: String, _ range: ClosedRange<Int>) throws(ValueError) -> Int {
    guard let number = Int(text), range.contains(number) else {
      throw ValueError(
        "\(name)=\(text) is not a whole number from \(range.lowerBound) to \(range.upperBound)",
        advice: "write \(name)=\(range.lowerBound)")
    }
    return number
  }

  /// One of the words of a type, or of the given words.
  package static func word<Word: RawRepresentable & CaseIterable>(
    _ name: String, _ text: String, _ words: [Word] = Array(Word.allCases)
  ) throws(ValueError) -> Word where Word.RawValue == String {
    guard let word = words.first(where: { $0.rawValue == text }) else {
      let words = words.map(\.rawValue).joined(separator: ", ")
      throw ValueError("\(name)=\(text) is unknown", advice: "use one of \(words)")
    }
    return word
  }
}
