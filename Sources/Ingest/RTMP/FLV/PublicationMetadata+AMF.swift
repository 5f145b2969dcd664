internal import Base
internal import FMP4
internal import Publishing

extension PublicationMetadata {
  /// Reads the used values of onMetaData (FLV 10.1 E.5): its object, alone or wrapped in `@setDataFrame`. Nil for any
  /// other message.
  init?(_ values: [AMFValue]) {
    var rest = values[...]
    if rest.first?.string == "@setDataFrame" { rest = rest.dropFirst() }
    guard rest.first?.string == "onMetaData", let object = rest.dropFirst().first else { return nil }
    self.init()
    framesPerSecond = (object["framerate"]?.number ?? object["fps"]?.number).flatMap { $0 > 0 ? $0 : nil }
    hasVideo = Self.names(object, flag: "hasVideo", ["videocodecid", "width", "videodatarate", "framerate"])
    hasAudio = Self.names(object, flag: "hasAudio", ["audiocodecid", "audiosamplerate", "audiodatarate"])
    keyFrameDistance = (object["videokeyframe_frequency"]?.number).flatMap(Self.distance)
    encoder = PeerText.printable(object["encoder"]?.string ?? "", limit: 64)
    for (kind, name) in [(MediaKind.video, "videoTrackIdInfoMap"), (.audio, "audioTrackIdInfoMap")] {
      for track in object[name]?.properties?.prefix(PublicationLimits.tracks) ?? [] {
        guard let number = UInt8(track.name) else { continue }
        let language = track.value["language"]?.string ?? track.value["lang"]?.string
        tracks[TrackID(kind, flv: number)] = TrackStatement(language: language.flatMap(LanguageCode.three))
      }
    }
    if let language = (object["language"]?.string).flatMap(LanguageCode.three), tracks[.audio] == nil {
      tracks[.audio] = TrackStatement(language: language)
    }
  }

  /// Seconds between key frames, as Flash Media Live Encoder, Wirecast and those that follow them state it. Nil for more than a
  /// first segment may have: such a number may count frames, and its target would keep viewers far behind.
  private static func distance(_ seconds: Double) -> MediaTime? {
    (0.1...10).contains(seconds) ? MediaTime(milliseconds: Int64((seconds * 1000).rounded())) : nil
  }

  /// Whether the metadata names a kind of media: by its flag, else by one of the properties that is not zero. Some
  /// encoders write zero for "none".
  private static func names(_ object: AMFValue, flag: String, _ properties: [String]) -> Bool {
    if let stated = object[flag]?.boolean { return stated }
    return properties.contains { name in
      switch object[name] {
      case .number(let value)?: value != 0
      case .string(let text)?: !text.isEmpty
      default: false
      }
    }
  }
}
