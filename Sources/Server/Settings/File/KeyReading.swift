internal import Base
internal import Control
internal import Publishing

/// `keys:` of the configuration file: keys with a name, an expiry and what they allow, as those that are made over the API.
struct KeyReading {
  static let key = "keys"
  /// The members of a key.
  static let members = ["name", "key", "sha256", "publish", "watch", "record", "scope", "expiresAt"]
  /// The most keys of a file. Others are made over the API.
  static let limit = 10_000
  /// The fewest bytes of a key.
  static let shortest = 16

  private(set) var keys: [AccessKey] = []
  /// Equal for equal keys. No secret can be read out of it.
  private(set) var definition: [UInt8] = []
  /// Some key stands there as its text.
  private(set) var hasSecrets = false

  init() {}

  init(_ node: ConfigNode) throws(ConfigurationError) {
    var names: Set<String> = []
    var secrets: Set<Secret> = []
    for node in try node.entries(of: Self.key, atMost: Self.limit, example: "name") {
      let found = try node.members(
        of: Self.key, "a key", among: Self.members, example: "name: …, key: … and what it allows")
      let name = try Self.name(found["name"], node)
      guard names.insert(name).inserted else {
        throw (found["name"] ?? node).place.error("\(Self.key).name", "two keys have the same name", "rename one")
      }
      let secret = try secret(found, node)
      guard secrets.insert(secret).inserted else {
        throw node.place.error(Self.key, "two keys have the same text", "give each a text of its own")
      }
      keys.append(AccessKey(grant: try Self.grant(name, found, node), secret: secret, madeAt: nil))
    }
    definition = Secret(node.canonical).digest
  }

  // MARK: Members

  private static func name(_ node: ConfigNode?, _ key: ConfigNode) throws(ConfigurationError) -> String {
    guard let node else { throw key.place.error(Self.key, "a key has no name", "write name: … below it") }
    let text = try node.text(of: "\(Self.key).name")
    return try reading(text, at: node, "name") { text throws(ValueError) in try AccessKey.name(parsing: text) }
  }

  private mutating func secret(_ found: [String: ConfigNode], _ key: ConfigNode) throws(ConfigurationError) -> Secret {
    switch (found["key"], found["sha256"]) {
    case (let node?, nil):
      let text = try node.text(of: "\(Self.key).key")
      guard text.utf8.count >= Self.shortest else {
        throw node.place.error(
          "\(Self.key).key", "it has fewer than \(Self.shortest) bytes", "openssl rand -hex 20 makes a good one")
      }
      hasSecrets = true
      return Secret(text)
    case (nil, let node?):
      guard let secret = Secret(hex: try node.text(of: "\(Self.key).sha256")) else {
        throw node.place.error(
          "\(Self.key).sha256", "that is no SHA-256 in hexadecimal", "printf %s KEY | sha256sum makes it")
      }
      return secret
    case (nil, nil): throw key.place.error(Self.key, "a key has no text", "write key: … or sha256: … below it")
    case (_?, let node?): throw node.place.error(Self.key, "a key has a text and a digest", "keep one of the two")
    }
  }

  private static func grant(
    _ name: String, _ found: [String: ConfigNode], _ key: ConfigNode
  ) throws(ConfigurationError) -> AccessGrant {
    var grant = AccessGrant(name: name)
    for action in AccessAction.allCases {
      guard let node = found[action.rawValue] else { continue }
      let patterns = try node.patterns(of: "\(Self.key).\(action.rawValue)")
      guard patterns.count <= AccessKey.patternLimit else {
        throw node.place.error(
          "\(Self.key).\(action.rawValue)", "\(patterns.count) patterns",
          "use at most \(AccessKey.patternLimit), and patterns with *")
      }
      grant.streams[action] = patterns
    }
    if let node = found["scope"] {
      grant.scope = try reading(try node.text(of: "\(Self.key).scope"), at: node, "scope") { text throws(ValueError) in
        guard let scope = AdminScope(rawValue: text) else {
          throw ValueError("that is no scope", advice: "use read, operate or admin")
        }
        return scope
      }
    }
    guard !grant.streams.isEmpty || grant.scope != nil else {
      throw key.place.error(Self.key, "a key allows nothing", "give it publish, watch, record or scope")
    }
    if let node = found["expiresAt"] {
      let text = try node.text(of: "\(Self.key).expiresAt")
      grant.ends = try reading(text, at: node, "expiresAt") { text throws(ValueError) in
        // A time that is over is no mistake: the file stays as it is when a key expires.
        guard let time = UTCText.read(text) else {
          throw ValueError("that is no time", advice: "write 2030-01-31T00:00:00Z")
        }
        return time
      }
    }
    return grant
  }

  private static func reading<Value>(
    _ text: String, at node: ConfigNode, _ member: String, _ parse: (String) throws(ValueError) -> Value
  ) throws(ConfigurationError) -> Value {
    do throws(ValueError) {
      return try parse(text)
    } catch {
      throw node.place.error("\(Self.key).\(member): \(LogText.escaped(text))", error.reason, error.advice)
    }
  }
}
