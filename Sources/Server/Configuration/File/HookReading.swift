internal import Basics
internal import Crypto
internal import Ingest

/// `hooks:` of the configuration file: a list of where events are told. It has no flag: what runs programs comes from the file alone.
struct HookReading {
  static let key = "hooks"
  /// The members of a hook.
  static let members = ["name", "on", "streams", "url", "secret", "run"]

  private(set) var hooks: [HookSettings] = []
  private(set) var hasSecrets = false

  init() {}

  init(_ node: ConfigNode) throws(ConfigurationError) {
    switch node.content {
    case .none: return
    case .list(let nodes):
      guard nodes.count <= HookSettings.limit else {
        throw node.place.error(Self.key, "\(nodes.count) hooks", "use at most \(HookSettings.limit)")
      }
      for node in nodes { try add(node) }
    case .text, .mapping:
      throw node.place.error(Self.key, "\(node.kind) where a list is wanted", "write - on: … below it")
    }
  }

  private mutating func add(_ node: ConfigNode) throws(ConfigurationError) {
    guard case .mapping(let entries) = node.content else {
      throw node.place.error(Self.key, "\(node.kind) where a hook is wanted", "write - on: … and url: … or run: …")
    }
    var found: [String: ConfigNode] = [:]
    for entry in entries {
      guard case .text(let key) = entry.key.content, Self.members.contains(key) else {
        let key = if case .text(let text) = entry.key.content { LogText.escaped(text) } else { "" }
        let near = Suggestion.nearest(to: key, among: Self.members)
        throw entry.key.place.error(
          "\(Self.key).\(key)", "a hook has no such member",
          near.map { "did you mean \($0)?" } ?? "there are \(Self.members.joined(separator: ", "))")
      }
      guard found.updateValue(entry.value, forKey: key) == nil else {
        throw entry.key.place.error("\(Self.key).\(key)", "it is given twice", "keep one of the two")
      }
    }
    let filter = EventFilter(kinds: try Self.kinds(found["on"], node), streams: try Self.streams(found["streams"]))
    let (action, identity) = try action(found, node)
    let name = try found["name"].map { node throws(ConfigurationError) in try Self.name(node) } ?? identity
    guard !hooks.contains(where: { $0.name == name }) else {
      throw (found["name"] ?? node).place.error(
        "\(Self.key).name", "two hooks are the same or have the same name", "give each a name of its own")
    }
    hooks.append(HookSettings(name: name, filter: filter, action: action))
  }

  // MARK: Members

  private static func kinds(_ node: ConfigNode?, _ hook: ConfigNode) throws(ConfigurationError) -> EventKinds {
    guard let node else {
      throw hook.place.error(key, "a hook says nothing of its events", "write on: recording.stored, or on: \"*\"")
    }
    var kinds = EventKinds()
    for (text, place) in try texts(node, "on") where !kinds.add(text) {
      let near = Suggestion.nearest(to: text, among: EventKinds.words)
      throw place.error(
        "\(key).on: \(LogText.escaped(text))", "there is no such event",
        near.map { "did you mean \($0)?" } ?? "there are \(EventKinds.words.joined(separator: ", ")), and recording.*")
    }
    return kinds
  }

  private static func streams(_ node: ConfigNode?) throws(ConfigurationError) -> (@Sendable (String?) -> Bool)? {
    guard let node else { return nil }
    var patterns: [StreamPattern] = []
    for (text, place) in try texts(node, "streams") {
      do throws(ValueError) {
        patterns.append(try StreamPattern(parsing: text))
      } catch {
        throw place.error("\(key).streams: \(LogText.escaped(text))", error.reason, error.advice)
      }
    }
    return { [patterns] name in
      name.flatMap { StreamName($0) }.map { name in patterns.contains { $0.matches(name) } } ?? false
    }
  }

  private mutating func action(
    _ found: [String: ConfigNode], _ hook: ConfigNode
  ) throws(ConfigurationError) -> (HookSettings.Action, identity: String) {
    switch (found["url"], found["run"]) {
    case (let url?, nil):
      let text = try Self.text(url, "url")
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
      let words = try Self.texts(run, "run").map(\.text)
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
    let text = try text(node, "name")
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

  private static func text(_ node: ConfigNode, _ member: String) throws(ConfigurationError) -> String {
    guard case .text(let text) = node.content else {
      throw node.place.error("\(key).\(member)", "\(node.kind) where one text is wanted", "write one text")
    }
    return text
  }

  /// One text, or several.
  private static func texts(
    _ node: ConfigNode, _ member: String
  ) throws(ConfigurationError) -> [(text: String, place: FilePlace)] {
    guard case .list(let nodes) = node.content else { return [(try text(node, member), node.place)] }
    guard !nodes.isEmpty else {
      throw node.place.error("\(key).\(member)", "the list is empty", "write at least one")
    }
    var texts: [(String, FilePlace)] = []
    for node in nodes { texts.append((try text(node, member), node.place)) }
    return texts
  }
}
