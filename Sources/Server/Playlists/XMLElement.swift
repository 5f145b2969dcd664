internal import NIOCore

/// An XML element as a value (XML 1.0 §3): what a document is before it is text, so that two states of it can be
/// compared node by node. It holds either text or elements. Between elements no white space is written: it would be
/// content, which a patch of the document would have to carry along.
struct XMLElement: Sendable, Hashable {
  struct Attribute: Sendable, Hashable {
    let name: String
    let value: String
  }

  let name: String
  /// In the order in which they are written.
  let attributes: [Attribute]
  let text: String
  let children: [XMLElement]
  /// Stands for the whole element where another process has written it.
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

  /// An element as another process wrote it.
  init(_ name: String, verbatim: String) {
    self.init(name, [:])
    self.verbatim = verbatim
  }

  private static func present(_ attributes: KeyValuePairs<String, String?>) -> [Attribute] {
    attributes.compactMap { name, value in value.map { Attribute(name: name, value: $0) } }
  }

  subscript(attribute: String) -> String? {
    attributes.first { $0.name == attribute }?.value
  }

  /// The same with another value of an attribute that it has.
  func with(_ attribute: String, _ value: String) -> XMLElement {
    XMLElement(
      name: name, attributes: attributes.map { $0.name == attribute ? Attribute(name: attribute, value: value) : $0 },
      text: text, children: children)
  }

  /// The document of which this is the root.
  var document: ByteBuffer {
    var out = ByteBuffer()
    out.writeStaticString("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n")
    write(to: &out)
    out.writeStaticString("\n")
    return out
  }

  /// The element alone.
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

  /// XML 1.0 §2.4; white space other than spaces as references, since readers make spaces of it in attributes (§3.3.3).
  private static func write(escaped text: String, to out: inout ByteBuffer) {
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "&"): out.writeStaticString("&amp;")
      case UInt8(ascii: "<"): out.writeStaticString("&lt;")
      case UInt8(ascii: ">"): out.writeStaticString("&gt;")
      case UInt8(ascii: "\""): out.writeStaticString("&quot;")
      case 0x09, 0x0A, 0x0D: out.writeString("&#\(byte);")
      // No XML document can hold the other control characters (§2.2).
      case 0..<0x20: out.writeStaticString("?")
      default: out.writeInteger(byte)
      }
    }
  }
}
