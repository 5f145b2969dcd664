internal import Base
internal import Control

/// The data of an event as the API gives it. Its members are not described, since each kind has its own.
extension EventValue: SimpleSchema, Encodable {
  static var blank: EventValue { .null }

  static func schema(in _: SchemaBook) -> JSONTree { .object([("type", .text("object"))]) }

  /// Members are sorted: decoders keep no order.
  init(from decoder: any Decoder) throws {
    if let members = try? decoder.container(keyedBy: AnyKey.self) {
      self = .object(
        try members.allKeys.sorted { $0.stringValue < $1.stringValue }.map { key in
          Member(name: key.stringValue, value: try members.decode(EventValue.self, forKey: key))
        })
      return
    }
    let one = try decoder.singleValueContainer()
    if one.decodeNil() {
      self = .null
    } else if let flag = try? one.decode(Bool.self) {
      self = .flag(flag)
    } else if let number = try? one.decode(Int64.self) {
      self = .whole(number)
    } else if let number = try? one.decode(Double.self) {
      self = .number(number)
    } else if let text = try? one.decode(String.self) {
      self = .text(text)
    } else {
      self = .list(try one.decode([EventValue].self))
    }
  }

  func encode(to encoder: any Encoder) throws {
    if case .object(let members) = self {
      var container = encoder.container(keyedBy: AnyKey.self)
      for member in members { try container.encode(member.value, forKey: AnyKey(stringValue: member.name)) }
      return
    }
    var container = encoder.singleValueContainer()
    switch self {
    case .null, .object: try container.encodeNil()
    case .flag(let flag): try container.encode(flag)
    case .whole(let number): try container.encode(number)
    case .number(let number): try container.encode(number)
    case .text(let text), .encoded(let text): try container.encode(text)
    case .list(let values): try container.encode(values)
    }
  }
}
