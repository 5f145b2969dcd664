package import NIOCore

/// An XML element (XML 1.0 §3) as a value, so that two documents can be compared node by node. It holds either text or
/// elements. No white space is written between elements: it would be content, which a patch would have to include.
package struct XMLElement: Sendable, Hashable {
  struct Attribute: Sendable, Hashable {
    let name: String
    let value: String
  }

  let name: String
  /// In the order in which they are written.
  let attributes: [Attribute]
  let text: String
  let children: [XMLElement]
  /// The markup of the whole element, kept from an earlier process of the server (before a restart). Nil for all other elements.
  private(set) var verbatim: String?

  init(name: String, attributes: [Attribute], text: String = "", children: [XMLElement] = []) {
    self.name = name
    self.attributes = attributes
    self.text = text
    self.children = children
  }

  /// Attributes without a value are left out.
  init(_ name: String, _ attributes: KeyValuePairs<String, String?> = [:], text: String = "") {
    self.init(name: name, attributes: Self.present(attributes), text: text)
  }

  init(_ name: String, _ attributes: KeyValuePairs<String, String?> = [:], children: [XMLElement]) {
    self.init(name: name, attributes: Self.present(attributes), children: children)
  }

  /// An element of which only the markup is known, from an earlier process. Its attributes and children are empty.
  init(_ name: String, verbatim: String) {
    self.init(name, [:])
    self.verbatim = verbatim
  }

  private static func present(_ attributes: KeyValuePairs<String, String?>) -> [Attribute] {
    attributes.compactMap { name, value in value.map { Attribute(name: name, value: $0) } }
  }

  /// The value of an attribute. Nil if the element does not have it.
  subscript(attribute: String) -> String? {
    attributes.first { $0.name == attribute }?.value
  }

  /// A copy with another value of an existing attribute.
  func with(_ attribute: String, _ value: String) -> XMLElement {
    XMLElement(
      name: name, attributes: attributes.map { $0.name == attribute ? Attribute(name: attribute, value: value) : $0 },
      text: text, children: children)
  }

  /// The document with this root.
  package var document: ByteBuffer {
    var out = ByteBuffer()
    out.writeStaticString("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n")
    write(to: &out)
    out.writeStaticString("\n")
    return out
  }

  /// The markup of this element alone.
  var markup: String {
    var out = ByteBuffer()
    write(to: &out)
    return String(buffer: out)
  }

  private func write(to out: inout ByteBuffer) {
    if let verbatim {
      out.writeString(verbatim)
      return
    }
    out.writeString("<\(name)")
    for attribute in attributes {
      out.writeString(" \(attribute.name)=\"")
      Self.write(escaped: attribute.value, to: &out)
      out.writeStaticString("\"")
    }
    guard !children.isEmpty || !text.isEmpty else {
      out.writeStaticString("/>")
      return
    }
    out.writeStaticString(">")
    Self.write(escaped: text, to: &out)
    for child in children { child.write(to: &out) }
    out.writeString("</\(name)>")
  }

  /// Escapes markup (XML 1.0 §2.4), for text and attributes alike. Tabs and line ends become character references: in attributes
  /// parsers would turn them into spaces (§3.3.3).
  private static func write(escaped text: String, to out: inout ByteBuffer) {
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "&"): out.writeStaticString("&amp;")
      case UInt8(ascii: "<"): out.writeStaticString("&lt;")
      case UInt8(ascii: ">"): out.writeStaticString("&gt;")
      case UInt8(ascii: "\""): out.writeStaticString("&quot;")
      case 0x09, 0x0A, 0x0D: out.writeString("&#\(byte);")
      // XML allows no other control characters (§2.2).
      case 0..<0x20: out.writeStaticString("?")
      default: out.writeInteger(byte)
      }
    }
  }
}
