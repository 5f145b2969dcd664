/// JSON whose members keep their order.
package enum JSONTree: Sendable {
  case text(String)
  /// A number or a truth value.
  case word(String)
  case list([JSONTree])
  case object([(String, JSONTree)])

  /// Indented text. `depth` is the indentation of the first line.
  package func text(depth: Int) -> String {
    let (outer, inner) = (String(repeating: "  ", count: depth), String(repeating: "  ", count: depth + 1))
    switch self {
    case .text(let text): return LogText.json(text)
    case .word(let word): return word
    case .list(let list): return "[" + list.map { $0.text(depth: depth) }.joined(separator: ", ") + "]"
    case .object(let members):
      let lines = members.map { "\(inner)\(LogText.json($0.0)): \($0.1.text(depth: depth + 1))" }
      return "{\n" + lines.joined(separator: ",\n") + "\n\(outer)}"
    }
  }
}
