internal import Base
internal import NIOCore

/// Action Message Format 3 (amf-file-format-spec), as far as commands and metadata use it; read only. Dictionaries,
/// vectors and externalizable objects are errors. References to whole objects read as undefined; no publisher's
/// metadata has them.
enum AMF3 {
  /// Tables that parts of a value refer to (AMF3 2.2).
  private struct Tables {
    var strings: [String] = []
    var traits: [Traits] = []
  }

  private struct Traits {
    var names: [String]
    var isDynamic: Bool
  }

  /// One value with everything nested in it.
  static func read(_ bytes: inout ByteBuffer) throws(WireError) -> AMFValue {
    var stack = AMFStack()
    var tables = Tables()
    repeat {
      if let level = stack.top {
        if let name = level.sealedNames.last {
          stack.top?.sealedNames.removeLast()
          stack.top?.nextName = name
        } else if level.kind != .strictArray, level.isDynamic {
          let name = try readString(&bytes, &tables)
          if name.isEmpty {
            // The named part of an array ends; the counted part follows.
            stack.top?.isDynamic = false
            continue
          }
          stack.top?.nextName = name
        } else if let remaining = level.remaining, remaining > 0 {
          stack.top?.remaining = remaining - 1
        } else {
          stack.close()
          continue
        }
      }
      try readMarked(&bytes, &tables, into: &stack)
    } while stack.result == nil
    return stack.result ?? .undefined
  }

  private static func readMarked(
    _ bytes: inout ByteBuffer, _ tables: inout Tables, into stack: inout AMFStack
  ) throws(WireError) {
    guard let marker: UInt8 = bytes.readInteger() else { throw truncated }
    switch marker {
    case 0x00: try stack.add(.undefined)
    case 0x01: try stack.add(.null)
    case 0x02: try stack.add(.boolean(false))
    case 0x03: try stack.add(.boolean(true))
    case 0x04:
      // 29 bits, signed.
      let value = Int32(bitPattern: try readU29(&bytes) << 3) >> 3
      try stack.add(.number(Double(value)))
    case 0x05: try stack.add(.number(readDouble(&bytes)))
    case 0x06: try stack.add(.string(readString(&bytes, &tables)))
    case 0x07, 0x0B, 0x0C:
      // XML and byte arrays: a length, then bytes.
      let header = try readU29(&bytes)
      guard header & 1 == 1 else { return try stack.add(.undefined) }
      guard let slice = bytes.readSlice(length: Int(header >> 1)) else { throw truncated }
      try stack.add(marker == 0x0C ? .undefined : .string(String(buffer: slice)))
    case 0x08:
      guard try readU29(&bytes) & 1 == 1 else { return try stack.add(.undefined) }
      try stack.add(.date(readDouble(&bytes)))
    case 0x09:
      let header = try readU29(&bytes)
      guard header & 1 == 1 else { return try stack.add(.undefined) }
      let count = Int(header >> 1)
      guard count <= bytes.readableBytes else {
        throw WireError(.malformed, "AMF array announces \(count) values in \(bytes.readableBytes) bytes")
      }
      try stack.open(AMFStack.Level(kind: .ecmaArray, remaining: count))
    case 0x0A:
      let header = try readU29(&bytes)
      guard header & 1 == 1 else { return try stack.add(.undefined) }
      let traits = try readTraits(header >> 1, &bytes, &tables)
      try stack.open(
        AMFStack.Level(kind: .object, sealedNames: traits.names.reversed(), isDynamic: traits.isDynamic))
    default: throw WireError(.unsupported, "AMF3 marker \(marker) is not supported")
    }
  }

  /// The class of an object: a reference to an earlier one, or its names (AMF3 3.12).
  private static func readTraits(
    _ header: UInt32, _ bytes: inout ByteBuffer, _ tables: inout Tables
  ) throws(WireError) -> Traits {
    guard header & 1 == 1 else {
      let index = Int(header >> 1)
      guard index < tables.traits.count else { throw WireError(.malformed, "AMF3 refers to class \(index)") }
      return tables.traits[index]
    }
    guard header & 2 == 0 else { throw WireError(.unsupported, "AMF3 externalizable objects are not supported") }
    _ = try readString(&bytes, &tables)
    let count = Int(header >> 3)
    guard count <= bytes.readableBytes, count <= AMFLimits.nodes else {
      throw WireError(.malformed, "AMF3 class announces \(count) names in \(bytes.readableBytes) bytes")
    }
    var traits = Traits(names: [], isDynamic: header & 4 != 0)
    for _ in 0..<count { traits.names.append(try readString(&bytes, &tables)) }
    tables.traits.append(traits)
    return traits
  }

  private static func readString(_ bytes: inout ByteBuffer, _ tables: inout Tables) throws(WireError) -> String {
    let header = try readU29(&bytes)
    if header & 1 == 0 {
      let index = Int(header >> 1)
      guard index < tables.strings.count else { throw WireError(.malformed, "AMF3 refers to string \(index)") }
      return tables.strings[index]
    }
    guard let text = bytes.readString(length: Int(header >> 1)) else { throw truncated }
    if !text.isEmpty { tables.strings.append(text) }
    return text
  }

  /// An integer of one to four bytes, with seven bits in each of the first three (AMF3 1.3.1).
  private static func readU29(_ bytes: inout ByteBuffer) throws(WireError) -> UInt32 {
    var value: UInt32 = 0
    for index in 0..<4 {
      guard let byte: UInt8 = bytes.readInteger() else { throw truncated }
      if index == 3 { return value << 8 | UInt32(byte) }
      value = value << 7 | UInt32(byte & 0x7F)
      if byte & 0x80 == 0 { break }
    }
    return value
  }

  private static func readDouble(_ bytes: inout ByteBuffer) throws(WireError) -> Double {
    guard let bits: UInt64 = bytes.readInteger() else { throw truncated }
    return Double(bitPattern: bits)
  }

  private static var truncated: WireError { WireError(.malformed, "AMF3 ends inside a value") }
}
