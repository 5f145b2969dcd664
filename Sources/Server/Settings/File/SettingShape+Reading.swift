internal import Control

extension SettingShape {
  /// The texts of a value; none for what is switched off.
  ///
  /// - Parameters:
  ///   - pattern: the streams whose entry it stands in.
  ///   - canBeOff: `null` switches the setting off: it has no default, and others may have it on for all streams.
  static func texts(
    of node: ConfigNode, for setting: any SettingDeclaration, of pattern: StreamPattern = .all, canBeOff: Bool = false
  ) throws(ConfigurationError) -> [GivenText] {
    let place = SettingPath.place(setting.path?.description ?? "", of: pattern)
    func given(_ text: String, _ node: ConfigNode) -> GivenText {
      GivenText(text, .file(node.place, setting.path ?? "", pattern), isSecret: setting.isSecret)
    }
    func mistake(_ node: ConfigNode, _ advice: String) -> ConfigurationError {
      node.place.error(place, "\(node.kind) is no value of it", advice)
    }
    switch (setting.shape, node.content) {
    case (_, .none) where canBeOff && !setting.isSecret: return []
    case (_, .list(let nodes)) where nodes.isEmpty && setting.isSecret:
      throw node.place.error(
        place, "the list is empty",
        "write \(setting.form ?? "a value") in it, or leave the line out to set none")
    case (.joined, .list(let nodes)) where nodes.isEmpty: return []
    case (_, .none): throw mistake(node, "write a value, or leave the line out")
    case (.yesOrNo, .text(let text)):
      guard let word = ["true": "1", "false": "0"][text] else {
        throw given(text, node).error("that is neither true nor false", "write true or false")
      }
      return [given(word, node)]
    case (.one, .text(let text)), (.list, .text(let text)), (.joined, .text(let text)): return [given(text, node)]
    case (.list, .list(let nodes)): return try nodes.map { node throws(ConfigurationError) in try text(node) }
    case (.joined, .list(let nodes)):
      let texts = try nodes.map { node throws(ConfigurationError) in try text(node) }
      return [given(texts.map(\.text).joined(separator: ","), node)]
    case (.byName, .mapping(let entries)):
      return try entries.map { entry throws(ConfigurationError) in
        given("\(try text(entry.key).text)=\(try text(entry.value).text)", entry.key)
      }
    case (.byName, _): throw mistake(node, "write NAME: \(setting.form ?? "value") below it")
    case (.yesOrNo, _): throw mistake(node, "write true or false")
    case (.one, _): throw mistake(node, "write one \(setting.form ?? "value")")
    case (.list, _), (.joined, _): throw mistake(node, "write one \(setting.form ?? "value"), or a list of them")
    }
    func text(_ node: ConfigNode) throws(ConfigurationError) -> GivenText {
      guard case .text(let text) = node.content else { throw mistake(node, "write one text") }
      return given(text, node)
    }
  }
}
