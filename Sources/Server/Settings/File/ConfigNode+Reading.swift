internal import Base
internal import Yams

/// Reads YAML, and JSON, which is YAML as well.
extension ConfigNode {
  /// Limits of a configuration file. The nesting is also limited by libyaml, to 1,000.
  enum Limits {
    static let bytes = 1 << 20
    static let nesting = 16
  }

  /// Reads one document. Anchors and aliases are refused: a few lines of them can stand for gigabytes.
  ///
  /// - Parameter file: the file's name, for errors.
  init(reading text: String, of file: String) throws(ConfigurationError) {
    let start = FilePlace(file: file, line: 1, column: 1)
    guard text.utf8.count <= Limits.bytes else {
      throw start.error("", "the file has more than \(Limits.bytes) bytes", "that is no configuration of weir")
    }
    if let found = ConfigScan.refused(in: text) {
      throw FilePlace(file: file, line: found.line, column: found.column).error("", found.reason, found.advice)
    }
    do {
      guard let root = try Parser(yaml: text, encoding: .utf8).singleRoot() else {
        self.init(content: .none, place: start)
        return
      }
      var room = text.utf8.count + 1
      try self.init(root, of: file, nesting: 0, &room)
    } catch let error as ConfigurationError {
      throw error
    } catch {
      throw Self.error(error, of: file)
    }
  }

  private init(_ node: Node, of file: String, nesting: Int, _ room: inout Int) throws(ConfigurationError) {
    place = FilePlace(file: file, line: node.mark?.line ?? 1, column: node.mark?.column ?? 1)
    guard nesting < Limits.nesting else {
      throw place.error("", "the file is nested more than \(Limits.nesting) deep", "no setting is")
    }
    // A file has fewer values than bytes, unless aliases repeat them.
    room -= 1
    guard room > 0 else { throw place.error("", "the file repeats itself by aliases", "write the values out") }
    switch node {
    case .scalar(let scalar):
      let isPlain = scalar.style == .plain
      content = isPlain && ["", "~", "null"].contains(scalar.string) ? .none : .text(scalar.string)
    case .sequence(let sequence):
      var list: [ConfigNode] = []
      for node in sequence { list.append(try ConfigNode(node, of: file, nesting: nesting + 1, &room)) }
      content = .list(list)
    case .mapping(let mapping):
      var entries: [Entry] = []
      for (key, value) in mapping {
        entries.append(
          Entry(
            key: try ConfigNode(key, of: file, nesting: nesting + 1, &room),
            value: try ConfigNode(value, of: file, nesting: nesting + 1, &room)))
      }
      content = .mapping(entries)
    case .alias:
      throw place.error("", "aliases are not read", "write the value out")
    }
  }

  private static func error(_ error: any Error, of file: String) -> ConfigurationError {
    let advice = "correct the YAML there"
    func at(_ mark: Mark, _ problem: String) -> ConfigurationError {
      FilePlace(file: file, line: mark.line, column: mark.column).error("", LogText.escaped(problem), advice)
    }
    switch error as? YamlError {
    case .scanner(_, let problem, let mark, _), .parser(_, let problem, let mark, _),
      .composer(_, let problem, let mark, _):
      return at(mark, problem)
    case .duplicatedKeysInMapping(_, let context):
      // It may be a secret that stands in the wrong place.
      return at(context.mark, "a name is given twice")
    case .reader(let problem, _, _, _):
      return FilePlace(file: file, line: 1, column: 1).error("", LogText.escaped(problem), "save the file as UTF-8")
    default:
      return FilePlace(file: file, line: 1, column: 1).error("", LogText.escaped("\(error)"), advice)
    }
  }
}
