internal import Base
internal import NIOCore

/// Action Message Format 0 (amf0-file-format-specification): the values of commands and metadata. Reading is iterative
/// and limited by `AMFLimits`.
enum AMF0 {
  private enum Marker {
    static let number: UInt8 = 0x00
    static let boolean: UInt8 = 0x01
    static let string: UInt8 = 0x02
    static let object: UInt8 = 0x03
    static let null: UInt8 = 0x05
    static let undefined: UInt8 = 0x06
    static let reference: UInt8 = 0x07
    static let ecmaArray: UInt8 = 0x08
    static let objectEnd: UInt8 = 0x09
    static let strictArray: UInt8 = 0x0A
    static let date: UInt8 = 0x0B
    static let longString: UInt8 = 0x0C
    static let unsupported: UInt8 = 0x0D
    static let xmlDocument: UInt8 = 0x0F
    static let typedObject: UInt8 = 0x10
    static let amf3: UInt8 = 0x11
  }

  /// All values of a message, in order.
  static func readAll(_ bytes: inout ByteBuffer) throws(WireError) -> [AMFValue] {
    let beginning = readBeginning(&bytes)
    if let fault = beginning.fault { throw fault }
    return beginning.values
  }

  /// The values of a message up to the first that cannot be read, and why it cannot. Of a container that ends too early what came
  /// before counts: then the last value is cut.
  static func readBeginning(_ bytes: inout ByteBuffer) -> (values: [AMFValue], fault: WireError?, isLastCut: Bool) {
    var values: [AMFValue] = []
    while bytes.readableBytes > 0 {
      guard values.count < AMFLimits.nodes else {
        return (values, WireError(.limit, "AMF with more than \(AMFLimits.nodes) values"), false)
      }
      var stack = AMFStack()
      do throws(WireError) {
        values.append(try read(&bytes, by: &stack))
      } catch {
        let isCut = stack.top != nil
        while stack.top != nil { stack.close() }
        if isCut, let cut = stack.result { values.append(cut) }
        return (values, error, isCut)
      }
    }
    return (values, nil, false)
  }

  /// One value with everything nested in it.
  private static func read(_ bytes: inout ByteBuffer, by stack: inout AMFStack) throws(WireError) -> AMFValue {
    repeat {
      switch stack.top?.kind {
      case .strictArray where stack.top?.remaining == 0:
        stack.close()
        continue
      case .strictArray:
        stack.top?.remaining? -= 1
      case .object, .ecmaArray:
        let name = try readShortString(&bytes)
        if name.isEmpty, bytes.getInteger(at: bytes.readerIndex) == Marker.objectEnd {
          bytes.moveReaderIndex(forwardBy: 1)
          stack.close()
          continue
        }
        stack.top?.nextName = name
      case nil: break
      }
      try readMarked(&bytes, into: &stack)
    } while stack.result == nil
    return stack.result ?? .undefined
  }

  /// Reads a marker and its value, or the start of a container.
  private static func readMarked(_ bytes: inout ByteBuffer, into stack: inout AMFStack) throws(WireError) {
    guard let marker: UInt8 = bytes.readInteger() else { throw truncated("a value") }
    switch marker {
    case Marker.number: try stack.add(.number(readDouble(&bytes)))
    case Marker.boolean:
      guard let value: UInt8 = bytes.readInteger() else { throw truncated("a Boolean") }
      try stack.add(.boolean(value != 0))
    case Marker.string: try stack.add(.string(readShortString(&bytes)))
    case Marker.longString, Marker.xmlDocument:
      guard let length: UInt32 = bytes.readInteger(), let text = bytes.readString(length: Int(length)) else {
        throw truncated("a long string")
      }
      try stack.add(.string(text))
    case Marker.object: try stack.open(AMFStack.Level(kind: .object))
    case Marker.typedObject:
      _ = try readShortString(&bytes)
      try stack.open(AMFStack.Level(kind: .object))
    case Marker.ecmaArray:
      // The count is only a hint: the array ends with its end marker.
      guard bytes.readInteger(as: UInt32.self) != nil else { throw truncated("an array") }
      try stack.open(AMFStack.Level(kind: .ecmaArray))
    case Marker.strictArray:
      guard let count: UInt32 = bytes.readInteger() else { throw truncated("an array") }
      // Each element takes at least one byte, so a larger count is invalid.
      guard Int(count) <= bytes.readableBytes else {
        throw WireError(.malformed, "AMF array announces \(count) values in \(bytes.readableBytes) bytes")
      }
      try stack.open(AMFStack.Level(kind: .strictArray, remaining: Int(count)))
      if count == 0 { stack.close() }
    case Marker.date:
      let time = try readDouble(&bytes)
      guard bytes.readInteger(as: UInt16.self) != nil else { throw truncated("a date") }
      try stack.add(.date(time))
    case Marker.null: try stack.add(.null)
    case Marker.undefined, Marker.unsupported: try stack.add(.undefined)
    case Marker.reference:
      guard bytes.readInteger(as: UInt16.self) != nil else { throw truncated("a reference") }
      try stack.add(.undefined)
    case Marker.amf3: try stack.add(AMF3.read(&bytes))
    default: throw WireError(.malformed, "AMF0 marker \(marker) is unknown")
    }
  }

  private static func readDouble(_ bytes: inout ByteBuffer) throws(WireError) -> Double {
    guard let bits: UInt64 = bytes.readInteger() else { throw truncated("a number") }
    return Double(bitPattern: bits)
  }

  private static func readShortString(_ bytes: inout ByteBuffer) throws(WireError) -> String {
    guard let length: UInt16 = bytes.readInteger(), let text = bytes.readString(length: Int(length)) else {
      throw truncated("a string")
    }
    return text
  }

  private static func truncated(_ what: String) -> WireError {
    WireError(.malformed, "AMF0 ends inside \(what)")
  }

  /// Appends a value. weir's own values are small and shallow, so recursion is bounded.
  static func write(_ value: AMFValue, to bytes: inout ByteBuffer) {
    switch value {
    case .number(let number):
      bytes.writeInteger(Marker.number)
      bytes.writeInteger(number.bitPattern)
    case .boolean(let flag):
      bytes.writeInteger(Marker.boolean)
      bytes.writeInteger(UInt8(flag ? 1 : 0))
    case .string(let text):
      if text.utf8.count <= Int(UInt16.max) {
        bytes.writeInteger(Marker.string)
        writeShortString(text, to: &bytes)
      } else {
        bytes.writeInteger(Marker.longString)
        bytes.writeInteger(UInt32(truncatingIfNeeded: text.utf8.count))
        bytes.writeString(text)
      }
    case .object(let properties):
      bytes.writeInteger(Marker.object)
      writeProperties(properties, to: &bytes)
    case .ecmaArray(let properties):
      bytes.writeInteger(Marker.ecmaArray)
      bytes.writeInteger(UInt32(truncatingIfNeeded: properties.count))
      writeProperties(properties, to: &bytes)
    case .strictArray(let elements):
      bytes.writeInteger(Marker.strictArray)
      bytes.writeInteger(UInt32(truncatingIfNeeded: elements.count))
      for element in elements { write(element, to: &bytes) }
    case .date(let milliseconds):
      bytes.writeInteger(Marker.date)
      bytes.writeInteger(milliseconds.bitPattern)
      bytes.writeInteger(UInt16(0))
    case .null: bytes.writeInteger(Marker.null)
    case .undefined: bytes.writeInteger(Marker.undefined)
    }
  }

  private static func writeProperties(_ properties: [AMFValue.Property], to bytes: inout ByteBuffer) {
    for property in properties {
      writeShortString(property.name, to: &bytes)
      write(property.value, to: &bytes)
    }
    bytes.writeInteger(UInt16(0))
    bytes.writeInteger(Marker.objectEnd)
  }

  private static func writeShortString(_ text: String, to bytes: inout ByteBuffer) {
    bytes.writeLengthPrefixedShort(text)
  }
}

extension ByteBuffer {
  /// Writes a string after its length in two bytes. Longer strings are cut.
  fileprivate mutating func writeLengthPrefixedShort(_ text: String) {
    let utf8 = text.utf8.prefix(Int(UInt16.max))
    writeInteger(UInt16(utf8.count))
    writeBytes(utf8)
  }
}
