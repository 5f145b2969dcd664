import NIOCore
@testable import Playlists
import Testing

@Suite struct XMLTests {
  @Test func whatXMLReservesIsEscaped() {
    let element = XMLElement(
      "a", ["b": "<&>\"'\n", "absent": nil], children: [XMLElement("c", text: "1 < 2 & \"x\"\u{1}"), XMLElement("d")])
    #expect(
      String(buffer: element.document) == """
        <?xml version="1.0" encoding="UTF-8"?>
        <a b="&lt;&amp;&gt;&quot;'&#10;"><c>1 &lt; 2 &amp; &quot;x&quot;?</c><d/></a>

        """)
  }
}

/// Reads what `XMLElement` writes.
enum XMLText {
  struct Malformed: Error {}

  static func parse(_ document: String) throws -> XMLElement {
    var rest = document[...]
    guard let end = rest.firstRange(of: "?>") else { throw Malformed() }
    rest = rest[end.upperBound...]
    return try element(&rest)
  }

  private static func element(_ rest: inout Substring) throws -> XMLElement {
    guard let tag = rest.prefixMatch(of: #/\s*<([A-Za-z]+)((?: [A-Za-z:]+="[^"]*")*)(/?)>/#) else { throw Malformed() }
    rest = rest[tag.range.upperBound...]
    let attributes = tag.2.matches(of: #/ ([A-Za-z:]+)="([^"]*)"/#).map {
      XMLElement.Attribute(name: String($0.1), value: unescaped($0.2))
    }
    let name = String(tag.1)
    guard tag.3.isEmpty else { return XMLElement(name: name, attributes: attributes) }
    var children: [XMLElement] = []
    guard let text = rest.prefixMatch(of: #/[^<]*/#) else { throw Malformed() }
    rest = rest[text.range.upperBound...]
    while !rest.hasPrefix("</") { children.append(try element(&rest)) }
    guard rest.hasPrefix("</\(name)>") else { throw Malformed() }
    rest = rest.dropFirst(name.count + 3)
    return XMLElement(name: name, attributes: attributes, text: unescaped(text.0), children: children)
  }

  private static func unescaped(_ text: Substring) -> String {
    text.replacing("&lt;", with: "<").replacing("&gt;", with: ">").replacing("&quot;", with: "\"")
      .replacing("&amp;", with: "&").description
  }
}

extension XMLElement {
  /// The order of attributes means nothing (XML 1.0 §3.1).
  var canonical: XMLElement {
    XMLElement(
      name: name, attributes: attributes.sorted { $0.name < $1.name }, text: text, children: children.map(\.canonical))
  }

  struct NotThere: Error { var selector: String }

  /// What an operation of RFC 5261 makes of it: a plain applier of its own, by the clauses of the RFC.
  func applying(_ operation: XMLElement) throws -> XMLElement {
    let selector = operation["sel"] ?? ""
    var steps = selector.split(separator: "/").map(String.init)
    guard steps.removeFirst() == name else { throw NotThere(selector: selector) }
    return try at(steps, operation, selector)
  }

  private func at(_ steps: [String], _ operation: XMLElement, _ selector: String) throws -> XMLElement {
    guard let step = steps.first else { return applyingHere(operation) }
    if step.hasPrefix("@") {
      let attribute = String(step.dropFirst())
      guard self[attribute] != nil else { throw NotThere(selector: selector) }
      let changed = attributes.compactMap { known -> Attribute? in
        guard known.name == attribute else { return known }
        return operation.name == "remove" ? nil : Attribute(name: attribute, value: operation.text)
      }
      return with(attributes: changed)
    }
    let index = try child(step, selector)
    var list = children
    let isLast = steps.count == 1
    switch (isLast, operation.name, operation["pos"]) {
    case (true, "remove", _): list.remove(at: index)
    case (true, "replace", _): list.replaceSubrange(index...index, with: operation.children)
    case (true, "add", "after"): list.insert(contentsOf: operation.children, at: index + 1)
    case (true, "add", "before"): list.insert(contentsOf: operation.children, at: index)
    default: list[index] = try list[index].at(Array(steps.dropFirst()), operation, selector)
    }
    return with(children: list)
  }

  private func applyingHere(_ operation: XMLElement) -> XMLElement {
    if let type = operation["type"] {
      return with(attributes: attributes + [Attribute(name: String(type.dropFirst()), value: operation.text)])
    }
    return with(
      children: operation["pos"] == "prepend" ? operation.children + children : children + operation.children)
  }

  private func child(_ step: String, _ selector: String) throws -> Int {
    guard let parts = step.wholeMatch(of: #/(\w+)(?:\[(?:(\d+)|@(\w+)='([^']*)')\])?/#) else {
      throw NotThere(selector: selector)
    }
    var found = children.indices.filter { children[$0].name == parts.1 }
    if let position = parts.2.flatMap({ Int($0) }) {
      found = found.indices.contains(position - 1) ? [found[position - 1]] : []
    } else if let attribute = parts.3, let value = parts.4 {
      found = found.filter { children[$0][String(attribute)] == String(value) }
    }
    guard found.count == 1 else { throw NotThere(selector: selector) }
    return found[0]
  }

  private func with(attributes: [Attribute]) -> XMLElement {
    XMLElement(name: name, attributes: attributes, text: text, children: children)
  }

  private func with(children: [XMLElement]) -> XMLElement {
    XMLElement(name: name, attributes: attributes, text: text, children: children)
  }
}
