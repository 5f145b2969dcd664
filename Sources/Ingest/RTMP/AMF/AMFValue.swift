/// A value of the Action Message Format, version 0 or 3.
enum AMFValue: Sendable, Equatable {
  case number(Double)
  case boolean(Bool)
  case string(String)
  /// Properties in their order in the data.
  case object([Property])
  /// An array with names (AMF0 2.10, AMF3 3.11).
  case ecmaArray([Property])
  case strictArray([AMFValue])
  /// Milliseconds since 1970.
  case date(Double)
  case null
  case undefined

  struct Property: Sendable, Equatable {
    var name: String
    var value: AMFValue
  }

  /// A property of an object or named array. Nil if there is none. Of several, the last one.
  subscript(name: String) -> AMFValue? {
    switch self {
    case .object(let properties), .ecmaArray(let properties): properties.last { $0.name == name }?.value
    default: nil
    }
  }

  /// The properties of an object or named array.
  var properties: [Property]? {
    switch self {
    case .object(let properties), .ecmaArray(let properties): properties
    default: nil
    }
  }

  var number: Double? {
    if case .number(let value) = self { return value }
    return nil
  }

  var string: String? {
    if case .string(let value) = self { return value }
    return nil
  }

  var boolean: Bool? {
    if case .boolean(let value) = self { return value }
    return nil
  }

  /// An object from names and values, in order.
  static func object(_ properties: KeyValuePairs<String, AMFValue>) -> AMFValue {
    .object(properties.map { Property(name: $0.key, value: $0.value) })
  }
}
