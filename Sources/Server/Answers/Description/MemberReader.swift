internal import Base

/// A decoder without data. It gives a blank value for each member that a type reads, and notes the member.
final class MemberReader: Decoder {
  struct Member {
    let name: String
    let schema: JSONTree
    let isOptional: Bool
  }

  /// A type that is no object of members.
  struct Unsupported: Error {}

  let book: SchemaBook
  private(set) var members: [Member] = []
  fileprivate var optionalName: String?
  let codingPath: [any CodingKey] = []
  let userInfo: [CodingUserInfoKey: Any] = [:]

  init(book: SchemaBook) { self.book = book }

  func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedDecodingContainer<Key> {
    KeyedDecodingContainer(MemberContainer<Key>(reader: self))
  }

  func unkeyedContainer() throws -> any UnkeyedDecodingContainer { throw Unsupported() }

  func singleValueContainer() throws -> any SingleValueDecodingContainer { throw Unsupported() }

  fileprivate func read<Value: Decodable>(_ type: Value.Type, _ name: String) throws -> Value {
    let isOptional = optionalName.take() == name
    members.append(Member(name: name, schema: book.schema(of: type), isOptional: isOptional))
    if let simple = type as? any SimpleSchema.Type, let blank = simple.blank as? Value { return blank }
    return try Value(from: MemberReader(book: book))
  }
}

private struct MemberContainer<Key: CodingKey>: KeyedDecodingContainerProtocol {
  let reader: MemberReader
  let codingPath: [any CodingKey] = []
  let allKeys: [Key] = []

  func contains(_ key: Key) -> Bool { true }

  /// Asked before an optional member is read.
  func decodeNil(forKey key: Key) -> Bool {
    reader.optionalName = key.stringValue
    return false
  }

  func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
    try reader.read(type, key.stringValue)
  }

  func nestedContainer<NestedKey: CodingKey>(
    keyedBy type: NestedKey.Type, forKey key: Key
  ) throws -> KeyedDecodingContainer<NestedKey> { throw MemberReader.Unsupported() }

  func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
    throw MemberReader.Unsupported()
  }

  func superDecoder() throws -> any Decoder { throw MemberReader.Unsupported() }

  func superDecoder(forKey key: Key) throws -> any Decoder { throw MemberReader.Unsupported() }
}
