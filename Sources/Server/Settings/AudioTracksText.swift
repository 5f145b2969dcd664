internal import Base
internal import FMP4
internal import Recording
internal import Streams

/// Settings of single tracks: `audio-2=de`, `audio-2=Commentary`, `video,audio-2`.
enum AudioTracksText {
  private static let languageAdvice = "write tracks with languages: audio=en,audio-2=de"
  private static let nameAdvice = "write tracks or languages with names: audio-2=Commentary,de=Deutsch"
  private static let choiceAdvice = "write all, audio, video or renditions: video,audio,audio-2"
  private static let longestName = 64

  static func languages(_ text: String) throws(ValueError) -> [Int: String] {
    var languages: [Int: String] = [:]
    for (key, value) in try pairs(text, languageAdvice) {
      guard let number = number(key) else {
        throw ValueError("\(LogText.escaped(key)) is no track of audio", advice: languageAdvice)
      }
      guard let code = LanguageCode.three(value) else {
        throw ValueError("\(LogText.escaped(value)) is no language", advice: "write a code as de or deu")
      }
      guard languages.updateValue(code, forKey: number) == nil else {
        throw ValueError("\(key) is there twice", advice: languageAdvice)
      }
    }
    return languages
  }

  static func names(_ text: String) throws(ValueError) -> AudioNames {
    var names = AudioNames()
    for (key, value) in try pairs(text, nameAdvice) {
      guard (1...longestName).contains(value.count), !value.contains("\""),
        value.unicodeScalars.allSatisfy({ $0.properties.generalCategory != .control })
      else {
        throw ValueError(
          "\(LogText.escaped(value)) is no name of 1 to \(longestName) characters without quotation marks",
          advice: nameAdvice)
      }
      let former: String?
      if let number = number(key) {
        former = names.ofTracks.updateValue(value, forKey: number)
      } else if let code = LanguageCode.three(key) {
        former = names.ofLanguages.updateValue(value, forKey: code)
      } else {
        throw ValueError("\(LogText.escaped(key)) is no track of audio and no language", advice: nameAdvice)
      }
      if former != nil { throw ValueError("\(key) is there twice", advice: nameAdvice) }
    }
    return names
  }

  static func choice(_ text: String) throws(ValueError) -> TrackChoice {
    switch text {
    case "all": return .all
    case "audio": return .kind(.audio)
    case "video": return .kind(.video)
    default: break
    }
    var tracks: Set<TrackID> = []
    for part in text.split(separator: ",", omittingEmptySubsequences: false) {
      guard let track = track(String(part)) else {
        throw ValueError("\(LogText.escaped(String(part))) is no track", advice: choiceAdvice)
      }
      guard tracks.insert(track).inserted else { throw ValueError("\(part) is there twice", advice: choiceAdvice) }
    }
    return .numbers(tracks)
  }

  private static func pairs(_ text: String, _ advice: String) throws(ValueError) -> [(key: String, value: String)] {
    var pairs: [(String, String)] = []
    for part in text.split(separator: ",", omittingEmptySubsequences: false) {
      let sides = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard sides.count == 2 else {
        throw ValueError("\(LogText.escaped(String(part))) has no =", advice: advice)
      }
      pairs.append((String(sides[0]), String(sides[1])))
    }
    return pairs
  }

  private static func number(_ rendition: String) -> Int? {
    track(rendition).flatMap { $0.rawValue.isMultiple(of: 2) ? Int($0.rawValue / 2) : nil }
  }

  private static func track(_ rendition: String) -> TrackID? {
    switch Rendition(rawValue: rendition) {
    case .video?: .video
    case .audio?: .audio
    case .further(let kind, let number)?: TrackID(kind, number)
    case .interleaved?, .rung?, .transcodedAudio?, nil: nil
    }
  }
}
