internal import Base
internal import FMP4
internal import LocalSources
internal import Publishing
internal import Transcode

/// The audio setting as text: `source`, `aac` or `opus@64k`.
struct AudioSettingText: Sendable, Hashable {
  /// Nil for the source's audio alone.
  var audio: AudioSpecification?

  /// Allowed bit rates, inclusive.
  static let bitRate = 24_000...512_000

  /// Splits `NAME=WORD`.
  @Sendable static func named(_ text: String) throws(ValueError) -> (stream: StreamName, rest: String)? {
    guard let equals = text.firstIndex(of: "=") else { return nil }
    return (try StreamName(parsing: String(text[..<equals])), String(text[text.index(after: equals)...]))
  }

  init(parsing text: String) throws(ValueError) {
    if text == "source" { return }
    let halves = text.split(separator: "@", maxSplits: 1, omittingEmptySubsequences: false)
    guard let coding = halves.first.flatMap({ CodecID(.audio, rawValue: $0) }),
      AudioSpecification.codings.contains(coding)
    else {
      throw ValueError("\"\(text)\" is not an audio codec", advice: "use source, aac or opus, or aac@128k")
    }
    guard halves.count == 2 else {
      audio = AudioSpecification(coding)
      return
    }
    audio = AudioSpecification(coding, bitRate: try OptionValues.bitRate(String(halves[1]), Self.bitRate))
  }
}

extension AudioSettingText {
  /// The only text; nil without one.
  @Sendable static func audio(_ given: [GivenText]) throws(ConfigurationError) -> AudioSettingText? {
    guard given.count <= 1 else { throw given[1].error("the audio is given twice", "keep one of the two") }
    return try given.first?.read(AudioSettingText.init(parsing:))
  }
}
