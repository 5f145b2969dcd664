internal import Basics
internal import FMP4
internal import Ingest

/// The audio setting as text: `source`, `aac` or `opus@64k` for all streams, or for one with `NAME=` before it.
struct AudioSettingText: Sendable, Hashable {
  /// Nil for all streams that have no setting of their own.
  var name: StreamName?
  /// Nil for the source's audio alone.
  var audio: AudioSpecification?

  /// Allowed bit rates, inclusive.
  static let bitRate = 24_000...512_000

  init(parsing text: String) throws(ValueError) {
    var word = text[...]
    if let equals = text.firstIndex(of: "=") {
      name = try StreamName(parsing: String(text[..<equals]))
      word = text[text.index(after: equals)...]
    }
    if word == "source" { return }
    let halves = word.split(separator: "@", maxSplits: 1, omittingEmptySubsequences: false)
    guard let coding = halves.first.flatMap({ CodecID(.audio, rawValue: $0) }) else {
      throw ValueError("\"\(word)\" is not an audio codec", advice: "use source, aac or opus, or aac@128k")
    }
    guard halves.count == 2 else {
      audio = AudioSpecification(coding)
      return
    }
    audio = AudioSpecification(coding, bitRate: try OptionValues.bitRate(String(halves[1]), Self.bitRate))
  }
}

extension AudioProfiles {
  init(_ given: [GivenText]) throws(ConfigurationError) {
    for given in given {
      let text = try given.read(AudioSettingText.init(parsing:))
      let isTaken = text.name.map { byName[$0] != nil } ?? (standard != nil)
      guard !isTaken else {
        let whose = text.name.map { "\"\($0)\"" } ?? "all streams"
        throw given.error("the audio of \(whose) is given twice", "keep one of the two")
      }
      if let name = text.name { byName[name] = .some(text.audio) } else { standard = text.audio }
    }
  }
}
