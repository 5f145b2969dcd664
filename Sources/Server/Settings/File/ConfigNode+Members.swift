internal import Base
internal import Control

/// Lists of the file whose entries are no settings: hooks and keys.
extension ConfigNode {
  /// The same text for the same content, wherever it stands.
  var canonical: String {
    switch content {
    case .none: "null"
    case .text(let text): LogText.json(text)
    case .list(let nodes): "[\(nodes.map(\.canonical).joined(separator: ","))]"
    case .mapping(let entries):
      "{\(entries.map { "\($0.key.canonical):\($0.value.canonical)" }.joined(separator: ","))}"
    }
  }

  /// The entries of a list.
  ///
  /// - Parameters:
  ///   - list: its name in the file.
  ///   - example: how an entry begins, for advice.
  func entries(of list: String, atMost most: Int, example: String) throws(ConfigurationError) -> [ConfigNode] {
    switch content {
    case .none: return []
    case .list(let nodes):
      guard nodes.count <= most else {
        throw place.error(list, "\(nodes.count) entries", "use at most \(most)")
      }
      return nodes
    case .text, .mapping:
      throw place.error(list, "\(kind) where a list is wanted", "write - \(example): … below it")
    }
  }

  /// The members of an entry.
  ///
  /// - Parameters:
  ///   - noun: what an entry is, for errors: `a hook`.
  ///   - members: the names that they may have.
  func members(
    of list: String, _ noun: String, among members: [String], example: String
  ) throws(ConfigurationError) -> [String: ConfigNode] {
    guard case .mapping(let entries) = content else {
      throw place.error(list, "\(kind) where \(noun) is wanted", "write - \(example)")
    }
    var found: [String: ConfigNode] = [:]
    for entry in entries {
      guard case .text(let key) = entry.key.content, members.contains(key) else {
        let key = if case .text(let text) = entry.key.content { LogText.escaped(text) } else { "" }
        let near = Suggestion.nearest(to: key, among: members)
        throw entry.key.place.error(
          "\(list).\(key)", "\(noun) has no such member",
          near.map { "did you mean \($0)?" } ?? "there are \(members.joined(separator: ", "))")
      }
      guard found.updateValue(entry.value, forKey: key) == nil else {
        throw entry.key.place.error("\(list).\(key)", "it is given twice", "keep one of the two")
      }
    }
    return found
  }

  /// One text.
  func text(of member: String) throws(ConfigurationError) -> String {
    guard case .text(let text) = content else {
      throw place.error(member, "\(kind) where one text is wanted", "write one text")
    }
    return text
  }

  /// One text, or several.
  func texts(of member: String) throws(ConfigurationError) -> [(text: String, place: FilePlace)] {
    guard case .list(let nodes) = content else { return [(try text(of: member), place)] }
    guard !nodes.isEmpty else {
      throw place.error(member, "the list is empty", "write at least one")
    }
    var texts: [(String, FilePlace)] = []
    for node in nodes { texts.append((try node.text(of: member), node.place)) }
    return texts
  }

  /// Names and patterns of streams.
  func patterns(of member: String) throws(ConfigurationError) -> [StreamPattern] {
    var patterns: [StreamPattern] = []
    for (text, place) in try texts(of: member) {
      do throws(ValueError) {
        patterns.append(try StreamPattern(parsing: text))
      } catch {
        throw place.error("\(member): \(LogText.escaped(text))", error.reason, error.advice)
      }
    }
    return patterns
  }
}
