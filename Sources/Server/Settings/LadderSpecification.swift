internal import Base
internal import LibAV
internal import LocalSources
internal import Publishing
internal import Transcode

/// A ladder as text: `1080p@5M,720p@3M:preset=fast,360p@800k`.
struct LadderSpecification: Sendable, Hashable {
  /// From the largest to the smallest.
  var rungs: [RungSpecification]

  /// Allowed values of a rung, inclusive.
  enum Limits {
    static let shortSide = 64...4320
    static let bitRate = 50_000...200_000_000
  }

  /// Splits `NAME=RUNGS`. An equals sign after an `@` belongs to a rung's options.
  @Sendable static func named(_ text: String) throws(ValueError) -> (stream: StreamName, rest: String)? {
    guard let equals = text.firstIndex(of: "="), !text[..<equals].contains("@") else { return nil }
    return (try StreamName(parsing: String(text[..<equals])), String(text[text.index(after: equals)...]))
  }

  init(parsing text: String) throws(ValueError) {
    var rungs: [RungSpecification] = []
    for part in text.split(separator: ",", omittingEmptySubsequences: false) {
      let rung = try Self.rung(part)
      guard !rungs.contains(where: { $0.name == rung.name }) else {
        throw ValueError("the rung \(rung.name) is given twice", advice: "give each rung its own height")
      }
      rungs.append(rung)
    }
    guard rungs.count <= TranscodeLimits.rungs else {
      throw ValueError("a ladder of \(rungs.count) rungs", advice: "use at most \(TranscodeLimits.rungs)")
    }
    self.rungs = rungs.sorted { $0.shortSide > $1.shortSide }
  }

  private static func rung(_ text: Substring) throws(ValueError) -> RungSpecification {
    let pieces = text.split(separator: ":", omittingEmptySubsequences: false)
    let halves = pieces[0].split(separator: "@", omittingEmptySubsequences: false)
    guard halves.count == 2, halves[0].hasSuffix("p"), let side = Int(halves[0].dropLast()),
      Limits.shortSide.contains(side), side % 2 == 0, halves[0] == "\(side)p"
    else {
      let (least, most) = (Limits.shortSide.lowerBound, Limits.shortSide.upperBound)
      throw ValueError(
        "\"\(text)\" is not a rung",
        advice: "write HEIGHTp@BITRATE, such as 720p@3M or 720p@3M:preset=fast; even heights from \(least) to \(most)")
    }
    guard let rate = bitRate(halves[1]), Limits.bitRate.contains(rate) else {
      throw ValueError("\"\(halves[1])\" is not a bit rate", advice: "write 800k or 2.5M; from 50k to 200M")
    }
    return RungSpecification(shortSide: side, bitRate: rate, preset: try preset(pieces.dropFirst()))
  }

  private static func preset(_ options: ArraySlice<Substring>) throws(ValueError) -> VideoEncoding.Preset {
    guard let option = options.first else { return .veryfast }
    guard options.count == 1, let word = String(option).rest(after: "preset=") else {
      throw ValueError("\"\(option)\" is not an option of a rung", advice: "write 720p@3M:preset=fast")
    }
    return try OptionValues.word("preset", word)
  }

  /// Bits a second of `800k`, `2.5M` or `800000`.
  private static func bitRate(_ text: Substring) -> Int? {
    let factor = text.hasSuffix("k") ? 1000.0 : text.hasSuffix("M") ? 1_000_000.0 : 1
    let digits = factor == 1 ? text : text.dropLast()
    guard !digits.isEmpty, digits.utf8.count <= 9, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) || $0 == 0x2e }),
      let number = Double(digits)
    else { return nil }
    return Int((number * factor).rounded())
  }
}

extension LadderSpecification {
  /// The rungs of the only text; none without one.
  @Sendable static func rungs(_ given: [GivenText]) throws(ConfigurationError) -> [RungSpecification] {
    guard given.count <= 1 else { throw given[1].error("the ladder is given twice", "put all rungs into one") }
    return try given.first?.read(LadderSpecification.init(parsing:)).rungs ?? []
  }
}
