internal import Base
internal import Control
internal import Crypto
internal import Publishing

/// `hooks:` of the configuration file: a list of where events are told. It has no flag: what runs programs comes from the file alone.
struct HookReading {
  static let key = "hooks"
  /// The members of a hook.
  static let members = ["name", "on", "streams", "url", "secret", "run"]

  private(set) var hooks: [HookSettings] = []
  private(set) var hasSecrets = false

  init() {}

  init(_ node: ConfigNode) throws(ConfigurationError) {
    for node in try node.entries(of: Self.key, atMost: HookSettings.limit, example: "on") { try add(node) }
  }

  private mutating func add(_ node: ConfigNode) throws(ConfigurationError) {
    let found = try node.members(
      of: Self.key, "a hook", among: Self.members, example: "on: … and url: … or run: …")
    let filter = EventFilter(kinds: try Self.kinds(found["on"], node), streams: try Self.streams(found["streams"]))
    let (action, identity) = try action(found, node)
    let name = try found["name"].map { node throws(ConfigurationError) in try Self.name(node) } ?? identity
    guard !hooks.contains(where: { $0.name == name }) else {
      throw (found["name"] ?? node).place.error(
        "\(Self.key).name", "two hooks are the same or have the same name", "give each a name of its own")
    }
    let definition = Self.members.map { member in "\(member): \(found[member]?.canonical ?? "")" }
    hooks.append(
      HookSettings(
        name: name, filter: filter, action: action, definition: Secret(definition.joined(separator: "\n")).digest))
  }

  // MARK: Members

  private static func kinds(_ node: ConfigNode?, _ hook: ConfigNode) throws(ConfigurationError) -> EventKinds {
    guard let node else {
      throw hook.place.error(key, "a hook says nothing of its events", "write on: recording.stored, or on: \"*\"")
    }
    var kinds = EventKinds()
    for (text, place) in try node.texts(of: "\(key).on") where !kinds.add(text) {
      let near = Suggestion.nearest(to: text, among: EventKinds.words)
      throw place.error(
        "\(key).on: \(LogText.escaped(text))", "there is no such event",
        near.map { "did you mean \($0)?" } ?? "there are \(EventKinds.words.joined(separator: ", ")), and recording.*")
    }
    return kinds
  }

  private static func streams(_ node: ConfigNode?) throws(ConfigurationError) -> (@Sendable (String?) -> Bool)? {
    guard let patterns = try node?.patterns(of: "\(key).streams") else { return nil }
    return { name in
      name.flatMap { StreamName($0) }.map { name in patterns.contains { $0.matches(name) } } ?? false
    }
  }

  private mutating func action(
    _ found: [String: ConfigNode], _ hook: ConfigNode
  ) throws(ConfigurationError) -> (HookSettings.Action, identity: String) {
    switch (found["url"], found["run"]) {
    case (let url?, nil):
      let text = try url.text(of: "\(Self.key).url")
      guard Self.isAddress(text) else {
        throw url.place.error("\(Self.key).url", "that is no address of http or https", "write https://host/path")
      }
      var secret: WebhookSecret?
      if let node = found["secret"] {
        do throws(ValueError) {
          secret = try WebhookSecret(parsing: try Self.secretText(node))
        } catch {
          throw node.place.error("\(Self.key).secret", error.reason, error.advice)
        }
        hasSecrets = true
      }
      return (.post(url: text, secret: secret), Self.identity([text]))
    case (nil, let run?):
      if let node = found["secret"] {
        throw node.place.error("\(Self.key).secret", "a program has no secret", "remove it")
      }
      let words = try run.texts(of: "\(Self.key).run").map(\.text)
      do throws(ValueError) {
        return (.run(try HookCommand(parsing: words)), Self.identity(words))
      } catch {
        throw run.place.error("\(Self.key).run", error.reason, error.advice)
      }
    case (nil, nil): throw hook.place.error(Self.key, "a hook does nothing", "give it a url or a run")
    case (let url?, _?): throw url.place.error(Self.key, "a hook has a url and a run", "make two hooks of it")
    }
  }

  private static func secretText(_ node: ConfigNode) throws(ValueError) -> String {
    if case .text(let text) = node.content { return text }
    throw ValueError("\(node.kind) where a secret is wanted", advice: "write whsec_…")
  }

  private static func name(_ node: ConfigNode) throws(ConfigurationError) -> String {
    let text = try node.text(of: "\(key).name")
    guard let name = StreamName(text) else {
      throw node.place.error("\(key).name: \(LogText.escaped(text))", "that is no name", StreamName.grammar)
    }
    return name.description
  }

  /// An address that a request can be made of, without a user and a password: they would be shown by the API.
  private static func isAddress(_ text: String) -> Bool {
    guard text.utf8.count <= 2048, text.utf8.allSatisfy({ (0x21...0x7e).contains($0) }),
      let scheme = ["https://", "http://"].first(where: { text.lowercased().hasPrefix($0) })
    else { return false }
    let authority = text.dropFirst(scheme.count).prefix { !"/?#".contains($0) }
    return !authority.isEmpty && !authority.contains("@") && authority.first != ":"
  }

  /// A name for a hook without one, which stays the same while the hook does.
  private static func identity(_ words: [String]) -> String {
    let digest = SHA256.hash(data: Array(words.joined(separator: "\0").utf8))
    return digest.prefix(5).map { byte in
      let digits = String(byte, radix: 16)
      return digits.utf8.count < 2 ? "0" + digits : digits
    }.joined()
  }
}
