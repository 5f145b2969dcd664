package import Base
package import FMP4
package import LibAV
package import Local
package import Publishing

/// A local source: `demo=test`, `loop=file:clip.mp4`, `cam=v4l2:/dev/video0?size=1280x720,alsa:default`,
/// `field=udp://239.1.1.1:5000`.
package struct SourceSpecification: Sendable, Hashable {
  /// Where video and audio come from.
  package enum Kind: Sendable, Hashable {
    /// The built-in test pattern, its frames turned before they are encoded.
    case test(rotation: Rotation = .none)
    /// A file of this machine, in a loop.
    case file(path: String)
    case capture(CaptureSettings)
    /// A transport stream that arrives by UDP.
    case datagrams(DatagramPlace)
    /// An SRT listener elsewhere, which is called.
    case srt(SRTSource.Target)
  }

  package var name: StreamName
  package var kind: Kind

  package init(name: StreamName, kind: Kind) {
    self.name = name
    self.kind = kind
  }

  private static let advice =
    "write NAME=test, NAME=file:PATH, NAME=v4l2:DEVICE, NAME=alsa:DEVICE, NAME=v4l2:DEVICE,alsa:DEVICE,"
    + " NAME=udp://ADDRESS:PORT or NAME=srt://HOST:PORT"

  /// Parses `NAME=KIND`.
  ///
  /// - Parameter encoder: the encoder of cameras whose options name none.
  package init(parsing text: String, encoder: VideoEncoderName? = nil) throws(ValueError) {
    guard let equals = text.firstIndex(of: "=") else {
      throw ValueError("a source needs a name and a kind", advice: Self.advice)
    }
    let name = try StreamName(parsing: String(text[..<equals]))
    self.init(name: name, kind: try Self.kind(String(text[text.index(after: equals)...]), encoder))
  }

  private static func kind(_ text: String, _ encoder: VideoEncoderName?) throws(ValueError) -> Kind {
    if text == "test" { return .test() }
    if let options = text.rest(after: "test?") {
      guard let rotation = options.rest(after: "rotate=") else {
        throw ValueError("a test pattern has no option \"\(options)\"", advice: "write NAME=test?rotate=90")
      }
      return .test(rotation: try OptionValues.rotation(rotation))
    }
    if let rest = text.rest(after: "srt://") { return .srt(try SRTSource.Target(parsing: rest)) }
    if let path = text.rest(after: "file:") {
      guard !path.isEmpty else { throw ValueError("no file is named", advice: "write NAME=file:PATH") }
      return .file(path: path)
    }
    if let place = text.rest(after: "udp://") { return .datagrams(try DatagramPlace(parsing: place)) }
    var settings = CaptureSettings()
    for part in devices(text) {
      if let camera = part.rest(after: "v4l2:") {
        guard settings.camera == nil else {
          throw ValueError("two cameras in one source", advice: "give each camera a source of its own")
        }
        settings.camera = try DeviceOptions(camera, device: "a camera", example: "v4l2:/dev/video0")
          .camera(encoder: encoder)
      } else if let microphone = part.rest(after: "alsa:") {
        guard settings.microphone == nil else {
          throw ValueError("two microphones in one source", advice: "give each microphone a source of its own")
        }
        settings.microphone = try DeviceOptions(microphone, device: "a microphone", example: "alsa:default")
          .microphone()
      } else {
        throw ValueError("the kind of source \"\(part)\" is unknown", advice: advice)
      }
    }
    return .capture(settings)
  }

  /// The devices of a capture. ALSA's names may contain commas: `hw:1,0`.
  private static func devices(_ text: String) -> [String] {
    var parts: [String] = []
    for piece in text.split(separator: ",", omittingEmptySubsequences: false).map(String.init) {
      if parts.isEmpty || begins(piece) { parts.append(piece) } else { parts[parts.count - 1] += "," + piece }
    }
    return parts
  }

  private static func begins(_ piece: String) -> Bool {
    piece.hasPrefix("v4l2:") || piece.hasPrefix("alsa:")
  }

  /// The sources in a variable, separated by commas. A comma that no new source follows belongs to the source before it.
  package static func list(_ text: String) -> [String] {
    var sources: [String] = []
    for piece in text.split(separator: ",").map(String.init) {
      let equals = piece.firstIndex(of: "=")
      let isNew = equals.map { StreamName(piece[..<$0]) != nil && isKind(String(piece[piece.index(after: $0)...])) }
      if sources.isEmpty || isNew == true {
        sources.append(piece)
      } else {
        sources[sources.count - 1] += "," + piece
      }
    }
    return sources
  }

  private static func isKind(_ text: String) -> Bool {
    text == "test" || text.hasPrefix("test?") || text.hasPrefix("file:") || text.hasPrefix("udp://")
      || text.hasPrefix("srt://") || begins(text)
  }
}

extension String {
  /// The rest after a prefix; nil if the text does not begin with it.
  package func rest(after prefix: String) -> String? {
    hasPrefix(prefix) ? String(dropFirst(prefix.count)) : nil
  }
}

extension StreamName {
  /// Parses the name; throws the reason if it is none.
  package init(parsing text: String) throws(ValueError) {
    guard let name = StreamName(text) else {
      throw ValueError("\"\(text)\" cannot name a stream", advice: "use \(StreamName.grammar)")
    }
    self = name
  }
}
