package import Base

/// The JSON Schemas (draft 2020-12) of the API's objects. Each type is described once, by running its `init(from:)` on a decoder
/// that notes which members it reads, and as what. All members are required: what is unknown is null.
package final class SchemaBook {
  package private(set) var schemas: [String: JSONTree] = [:]

  package init() {}

  /// The schema of a type, or a reference to it.
  package func schema(of type: any Decodable.Type) -> JSONTree {
    if let simple = type as? any SimpleSchema.Type { return simple.schema(in: self) }
    let name = Self.name(of: type)
    if schemas[name] == nil {
      // Stands for itself meanwhile, should it contain itself.
      schemas[name] = .object([])
      let reader = MemberReader(book: self)
      _ = try? type.init(from: reader)
      schemas[name] = Self.object(reader.members, (type as? any APIObject.Type)?.notes ?? [:])
    }
    return Self.reference(name)
  }

  package static func reference(_ name: String) -> JSONTree {
    .object([("$ref", .text("#/components/schemas/\(name)"))])
  }

  /// The type's name without its module: `StreamLadder` for `StreamAnswer.Ladder`.
  static func name(of type: any Any.Type) -> String {
    String(reflecting: type).split(separator: ".").dropFirst().map { $0.replacing("Answer", with: "") }.joined()
  }

  private static func object(_ members: [MemberReader.Member], _ notes: [String: FieldNote]) -> JSONTree {
    let properties = members.map { member -> (String, JSONTree) in
      var schema = member.schema
      if let note = notes[member.name] {
        schema = schema.adding([("description", .text(note.text))] + note.keywords)
      }
      return (member.name, member.isOptional ? schema.orNull : schema)
    }
    return .object([
      ("type", .text("object")), ("additionalProperties", .word("false")),
      ("required", .list(members.map { .text($0.name) })), ("properties", .object(properties)),
    ])
  }
}

extension JSONTree {
  /// With more keywords. Beside `$ref` all are allowed (JSON Schema 2020-12, §8.2.3.1).
  fileprivate func adding(_ keywords: [(String, JSONTree)]) -> JSONTree {
    if case .object(let members) = self { .object(members + keywords) } else { self }
  }

  fileprivate var orNull: JSONTree { .object([("anyOf", .list([self, .object([("type", .text("null"))])]))]) }
}

/// A type whose schema does not need its members.
protocol SimpleSchema: Decodable {
  static func schema(in book: SchemaBook) -> JSONTree
  /// Any value, for the decoder that has none to read.
  static var blank: Self { get }
}

extension SimpleSchema where Self: FixedWidthInteger {
  static var blank: Self { 0 }
  static func schema(in _: SchemaBook) -> JSONTree {
    .object([("type", .text("integer"))] + (isSigned ? [] : [("minimum", .word("0"))]))
  }
}

extension Int: SimpleSchema {}
extension Int32: SimpleSchema {}
extension Int64: SimpleSchema {}
extension UInt32: SimpleSchema {}
extension UInt64: SimpleSchema {}

extension Double: SimpleSchema {
  static var blank: Double { 0 }
  static func schema(in _: SchemaBook) -> JSONTree { .object([("type", .text("number"))]) }
}

extension Bool: SimpleSchema {
  static var blank: Bool { false }
  static func schema(in _: SchemaBook) -> JSONTree { .object([("type", .text("boolean"))]) }
}

extension String: SimpleSchema {
  static var blank: String { "" }
  static func schema(in _: SchemaBook) -> JSONTree { .object([("type", .text("string"))]) }
}

extension Array: SimpleSchema where Element: Decodable {
  static var blank: [Element] { [] }
  static func schema(in book: SchemaBook) -> JSONTree {
    .object([("type", .text("array")), ("items", book.schema(of: Element.self))])
  }
}

extension Dictionary: SimpleSchema where Key == String, Value: Decodable {
  static var blank: [String: Value] { [:] }
  static func schema(in book: SchemaBook) -> JSONTree {
    .object([("type", .text("object")), ("additionalProperties", book.schema(of: Value.self))])
  }
}
