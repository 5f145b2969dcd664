package import Base
internal import FMP4
package import LibAV

/// The options of an encoder, shared by everything that encodes: `codec=hevc&bitrate=2M&preset=fast&gop=1s`.
package struct EncodingOptions {
  private(set) var encoding: VideoEncoding

  static let names = [
    "codec", "encoder", "bitrate", "rc", "preset", "tune", "profile", "gop", "bframes", "threads",
  ]

  /// - Parameter encoder: the encoder if the options name none; nil for the best of this machine.
  init(encoder: VideoEncoderName? = nil) {
    encoding = VideoEncoding(encoder: encoder)
    usualCoding = VideoEncoding().coding
    advice = "leave one of the two out"
  }

  /// Options that change existing settings; settings that are not named stay.
  init(changing present: VideoEncoding) {
    encoding = present
    usualCoding = present.coding
    advice = "name the other one as well; it keeps its value otherwise"
  }

  /// Applies an option. False if it is no option of an encoder.
  mutating func take(_ name: String, _ value: String) throws(ValueError) -> Bool {
    switch name {
    case "codec":
      encoding.coding = try OptionValues.word(name, value, VideoEncoderName.codings)
      // The configured encoder of all sources may be for another codec.
      if !isEncoderNamed, encoding.encoder?.coding != encoding.coding { encoding.encoder = nil }
      isCodingNamed = true
    case "encoder":
      encoding.encoder = try Self.encoder(name, value)
      isEncoderNamed = true
      if !isCodingNamed { encoding.coding = encoding.encoder?.coding ?? usualCoding }
    case "bitrate": encoding.bitRate = try OptionValues.bitRate(value, 50_000...100_000_000)
    case "rc": encoding.rateControl = try Self.rateControl(value)
    case "preset": encoding.preset = try OptionValues.word(name, value)
    case "tune": encoding.tune = try OptionValues.word(name, value)
    case "profile": encoding.profile = .some(try OptionValues.word(name, value))
    case "gop": encoding.keyFrameMilliseconds = try Self.interval(value)
    case "bframes": encoding.bFrames = try OptionValues.number(name, value, 0...8)
    case "threads": encoding.threads = try OptionValues.number(name, value, 0...64)
    default: return false
    }
    return true
  }

  /// The codec if none is named.
  private let usualCoding: CodecID
  /// Advice for contradictions.
  private let advice: String
  private var isCodingNamed = false
  private var isEncoderNamed = false

  /// Throws if the options contradict each other.
  func checked() throws(ValueError) -> VideoEncoding {
    if let contradiction = encoding.contradiction {
      throw ValueError(contradiction, advice: advice)
    }
    return encoding
  }

  /// `auto`, which is nil, or an encoder's name in libavcodec.
  package static func encoder(_ name: String, _ text: String) throws(ValueError) -> VideoEncoderName? {
    if text == "auto" { return nil }
    guard let encoder = VideoEncoderName(rawValue: text) else {
      let words = VideoEncoderName.allCases.map(\.rawValue).joined(separator: ", ")
      throw ValueError("\(name)=\(text) is unknown", advice: "use auto or one of \(words)")
    }
    return encoder
  }

  /// `cbr`, `vbr` or `crf:23`.
  private static func rateControl(_ text: String) throws(ValueError) -> VideoEncoding.RateControl {
    switch text {
    case "cbr": return .constant
    case "vbr": return .variable
    default:
      guard let quality = text.rest(after: "crf:").flatMap(Int.init), (0...51).contains(quality) else {
        throw ValueError("rc=\(text) is not a rate control", advice: "write rc=cbr, rc=vbr or rc=crf:23, from 0 to 51")
      }
      return .quality(quality)
    }
  }

  private static func interval(_ text: String) throws(ValueError) -> Int {
    let duration = try DurationText.parse(text)
    guard (.milliseconds(100)...Duration.seconds(30)).contains(duration) else {
      throw ValueError("gop=\(text) is outside 100ms to 30s", advice: "write gop=2s")
    }
    return Int(duration / .milliseconds(1))
  }
}
