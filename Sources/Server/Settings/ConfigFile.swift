internal import Base
internal import Control
internal import Glibc
package import Publishing

/// The texts of a configuration file, by setting. Whether a text is a possible value is decided where the setting is read.
package struct ConfigFile: Sendable {
  /// What the file says of one name or pattern.
  package struct Entry: Sendable {
    let pattern: StreamPattern
    var texts: [SettingName: [GivenText]] = [:]
  }

  /// The file's name, as it was given.
  package let name: String
  /// What holds for the server, and for all streams (`streams."*"`).
  private(set) var texts: [SettingName: [GivenText]] = [:]
  /// What holds for some streams: the most specific first; of equal ones, the one that stands first in the file.
  package private(set) var entries: [Entry] = []

  /// Where events are told.
  private(set) var hooks = HookReading()
  /// Keys with names.
  private(set) var keys = KeyReading()

  /// Every user of this machine may read it.
  package private(set) var isPublic = false

  /// It has keys or tokens.
  package var hasSecrets: Bool {
    hooks.hasSecrets || keys.hasSecrets
      || ([texts] + entries.map(\.texts)).contains { $0.values.joined().contains(where: \.isSecret) }
  }

  /// The most names and patterns.
  static let entryLimit = 10_000

  /// - Parameter text: YAML or JSON.
  init(_ text: String, name: String) throws(ConfigurationError) {
    self.name = name
    try read(try ConfigNode(reading: text, of: name), as: .root, for: nil)
    guard entries.count <= Self.entryLimit else {
      throw ConfigurationError(
        .usage, "\(name): \(entries.count) names and patterns of streams; use at most \(Self.entryLimit)")
    }
    // A stable order: `sort` promises none.
    entries = entries.enumerated().sorted { a, b in
      if a.element.pattern.isMoreSpecific(than: b.element.pattern) { return true }
      if b.element.pattern.isMoreSpecific(than: a.element.pattern) { return false }
      return a.offset < b.offset
    }.map(\.element)
  }

  /// - Parameter entry: the index of the stream entry that is read; nil for what holds for all.
  private mutating func read(_ node: ConfigNode, as group: ConfigGroup, for entry: Int?) throws(ConfigurationError) {
    switch node.content {
    case .none: return
    case .mapping(let entries):
      var keys: Set<String> = []
      for one in entries {
        // YAML tells apart what differs in its tag alone.
        if case .text(let key) = one.key.content, !keys.insert(key).inserted {
          throw one.key.place.error(place(of: group, entry), "a name is given twice", "keep one of the two")
        }
        try read(one, in: group, for: entry)
      }
    case .text, .list:
      throw node.place.error(
        place(of: group, entry), "\(node.kind) where a group of settings is wanted", "write \(group.example) below it")
    }
  }

  private mutating func read(
    _ one: ConfigNode.Entry, in group: ConfigGroup, for entry: Int?
  ) throws(ConfigurationError) {
    guard case .text(let key) = one.key.content else {
      throw one.key.place.error(
        place(of: group, entry), "a name of a setting is wanted here, not \(one.key.kind)", "correct it")
    }
    if group.path.isEmpty, key == HookReading.key { return hooks = try HookReading(one.value) }
    if group.path.isEmpty, key == KeyReading.key { return keys = try KeyReading(one.value) }
    if group.isOfStreams { return try readStream(key, one) }
    switch group[key] {
    case .group(let inner)?: try read(one.value, as: inner, for: entry)
    case .setting(let setting)?:
      let texts = try SettingShape.texts(
        of: one.value, for: setting, of: entry.map { entries[$0].pattern } ?? .all,
        canBeOff: entry != nil && setting.standard == nil)
      if let entry { entries[entry].texts[setting.name] = texts } else { self.texts[setting.name] = texts }
    case nil:
      // Without a value it may be a key or token that stands in the wrong place.
      if case .none = one.value.content, !group.path.isEmpty {
        throw one.key.place.error(
          place(of: group, entry), "what stands here is no setting", "write \(group.example) below it")
      }
      let path = group.path.isEmpty ? key : "\(place(of: group, entry)).\(key)"
      throw one.key.place.error(LogText.escaped(path), "weir has no such setting", group.advice(for: key))
    }
  }

  /// Where a group stands: with the name or pattern whose entry is read, in place of `*`.
  private func place(of group: ConfigGroup, _ entry: Int?) -> String {
    SettingPath.place(group.path, of: entry.map { entries[$0].pattern } ?? .all)
  }

  private mutating func readStream(_ key: String, _ one: ConfigNode.Entry) throws(ConfigurationError) {
    let pattern: StreamPattern
    do throws(ValueError) {
      pattern = try StreamPattern(parsing: key)
    } catch {
      throw one.key.place.error("\(SettingPath.streams).\(LogText.escaped(key))", error.reason, error.advice)
    }
    guard pattern != .all else { return try read(one.value, as: .stream, for: nil) }
    entries.append(Entry(pattern: pattern))
    try read(one.value, as: .stream, for: entries.count - 1)
  }
}

extension ConfigFile {
  /// What a request sets of a stream: JSON or YAML, as the stream's entry in a file.
  package static func texts(
    of stream: StreamName, setByAPI text: String
  ) throws(ConfigurationError) -> [SettingName: [GivenText]] {
    var file = ConfigFile(name: "the request")
    file.entries = [Entry(pattern: StreamPattern(stream))]
    let node = try ConfigNode(reading: text, of: file.name)
    guard case .mapping = node.content else {
      throw node.place.error("", "\(node.kind) where settings are wanted", #"write {"partDuration": "100ms"}"#)
    }
    try file.read(node, as: .stream, for: 0)
    let texts = file.entries.first?.texts ?? [:]
    for given in texts.values.joined() where given.isSecret {
      throw given.error("keys are not set here", "make one with POST /api/v1/keys")
    }
    for given in texts["fallback", default: []] where given.text.hasPrefix("file:") {
      throw given.error("files are not named here", "name it in the configuration file, or use test or stream:NAME")
    }
    return texts.mapValues {
      $0.map { given in
        guard case .file(_, let path, _) = given.origin else { return given }
        return GivenText(given.text, .api(stream, path))
      }
    }
  }

  private init(name: String) { self.name = name }

  /// Reads a file.
  ///
  /// - Parameter given: the path. With a `-` before it, the file may be missing: then nil.
  static func load(_ given: GivenText) throws(ConfigurationError) -> ConfigFile? {
    let mayBeMissing = given.text.hasPrefix("-")
    let path = mayBeMissing ? String(given.text.dropFirst()) : given.text
    guard !path.isEmpty else { throw given.error("the file's name is empty", "name a file") }
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else {
      if mayBeMissing, errno == ENOENT { return nil }
      throw given.error("cannot read it: \(String(cString: strerror(errno)))", "name a file that weir may read")
    }
    defer { close(descriptor) }
    // Opening a pipe must not wait for its writer; reading it may.
    _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_NONBLOCK)
    var status = stat()
    let isFile = fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 65_536)
    while bytes.count <= ConfigNode.Limits.bytes {
      let count = Glibc.read(descriptor, &chunk, chunk.count)
      if count < 0 {
        if errno == EINTR { continue }
        throw given.error("cannot read it: \(String(cString: strerror(errno)))", "name a file that weir may read")
      }
      guard count > 0 else { break }
      bytes += chunk[..<count]
    }
    guard isFile || !bytes.isEmpty else {
      throw given.error("it is no file, and nothing was written to it", "name a file, or write to the pipe")
    }
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw given.error("it is not UTF-8", "save the file as UTF-8")
    }
    var file = try ConfigFile(text, name: path)
    file.isPublic = isFile && status.st_mode & S_IROTH != 0
    return file
  }
}
