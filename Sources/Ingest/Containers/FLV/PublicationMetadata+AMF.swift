extension PublicationMetadata {
  /// What onMetaData says (FLV 10.1 E.5), as far as weir listens to it: its object, alone or wrapped in `@setDataFrame`. Nil
  /// when the message is another one.
  init?(_ values: [AMFValue]) {
    var rest = values[...]
    if rest.first?.string == "@setDataFrame" { rest = rest.dropFirst() }
    guard rest.first?.string == "onMetaData", let object = rest.dropFirst().first else { return nil }
    self.init()
    framesPerSecond = (object["framerate"]?.number ?? object["fps"]?.number).flatMap { $0 > 0 ? $0 : nil }
    hasVideo = Self.names(object, flag: "hasVideo", ["videocodecid", "width", "videodatarate", "framerate"])
    hasAudio = Self.names(object, flag: "hasAudio", ["audiocodecid", "audiosamplerate", "audiodatarate"])
    encoder = PeerText.printable(object["encoder"]?.string ?? "", limit: 64)
  }

  /// A flag says it; else one of the properties does, unless it is zero (which some encoders write for "none").
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
