internal import Base
internal import LocalSources
internal import Publishing

/// The local sources.
struct SourceOptions: TitledSettings {
  static let title = "Own sources"

  let source = Setting(
    "source", at: "sources", "name=kind", shape: .byName, split: SourceSpecification.list,
    "A source that weir runs itself: test, file:PATH, v4l2:DEVICE, alsa:DEVICE, udp://ADDRESS:PORT; may be repeated."
  ) { $0 }
  let testPattern = Setting(
    "test-pattern", at: "testPatterns", "name", shape: .list, split: { $0.commaSeparated },
    "The same as --source NAME=test; may be repeated."
  ) { $0 }
  let offAir = Setting(
    switch: "off-air", at: "capture.offAir", "Begin with these sources off the air: captured, but not published.")
  let encoder = Setting(
    "encoder", at: "capture.encoder",
    SettingText("auto|name") { text throws(ValueError) in try EncodingOptions.encoder("encoder", text) },
    default: "auto", "Encoder of cameras' video, as weir devices lists them.")

  /// The sources; throws if two have the same name.
  func specifications(_ given: SettingSources) throws(ConfigurationError) -> [SourceSpecification] {
    var specifications: [SourceSpecification] = []
    func add(_ text: GivenText, _ parse: (String) throws(ValueError) -> SourceSpecification) throws(ConfigurationError)
    {
      let specification = try text.read(parse)
      guard !specifications.contains(where: { $0.name == specification.name }) else {
        throw text.error("the name \"\(specification.name)\" is given twice", "give each source its own name")
      }
      specifications.append(specification)
    }
    let encoder = try given[encoder]
    for text in try given[source] {
      try add(text) { text throws(ValueError) in try SourceSpecification(parsing: text, encoder: encoder) }
    }
    for text in try given[testPattern] {
      try add(text) { text throws(ValueError) in
        SourceSpecification(name: try StreamName(parsing: text), kind: .test())
      }
    }
    return specifications
  }

  /// Whether sources begin on air. Off air requires an admin token, without which they could not be put on air.
  func beginning(_ given: SettingSources, adminToken: Setting<Secret?>) throws(ConfigurationError)
    -> ServerConfiguration.SourceBeginning
  {
    guard try given[offAir] else { return .onAir }
    guard try given[adminToken] != nil else {
      throw given.error(offAir, "without an admin token they cannot be put on air", "add \(adminToken.name.flag) TOKEN")
    }
    return .offAir
  }
}
