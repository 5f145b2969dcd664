internal import NIOCore

/// Decodes field sections (RFC 7541). One for each connection, since they change the table of fields for those that follow.
struct FieldSectionReader {
  /// The bytes are no field section. What follows on the connection cannot be decoded.
  struct Fault: Error {}

  /// Takes the fields of a section, in order.
  protocol Taker {
    mutating func take(_ name: Span<UInt8>, _ value: Span<UInt8>)
    /// The last field was the path, and its representation changes no table: these bytes of the section.
    mutating func pathStood(at range: Range<Int>)
  }

  private(set) var table = FieldTable()
  /// Texts that are not in the section as they are.
  private var texts = ByteBuffer()
  /// The most that the fields may count, by `FieldPlace.size`.
  let largest: Int

  init(largest: Int) {
    self.largest = largest
  }

  /// A text of the section: in its bytes, or decoded in `texts`.
  private struct Text {
    let isDecoded: Bool
    let range: Range<Int>
  }

  mutating func read(_ section: ByteBuffer, into taker: inout some Taker) throws(Fault) {
    let bytes = section.readableBytesUInt8Span
    var index = 0
    var size = 0
    var (updates, hasFields) = (0, false)
    texts.moveReaderIndex(to: 0)
    texts.moveWriterIndex(to: 0)
    while index < bytes.count {
      let first = bytes[index]
      if first & 0xE0 == 0x20 {
        // Only at the beginning, twice at most (RFC 7541 §4.2).
        updates += 1
        guard !hasFields, updates <= 2, table.resize(to: try Self.integer(bytes, &index, bits: 5)) else {
          throw Fault()
        }
        continue
      }
      hasFields = true
      if first & 0x80 != 0 {
        size &+= try take(indexed: try Self.integer(bytes, &index, bits: 7), into: &taker)
      } else {
        size &+= try takeLiteral(bytes, &index, into: &taker)
      }
      guard size <= largest else { throw Fault() }
    }
    if texts.capacity > 1024 { texts = ByteBuffer() }
  }

  private func take(indexed index: Int, into taker: inout some Taker) throws(Fault) -> Int {
    if 1...StaticFields.count ~= index {
      let fields = StaticFields.table
      let place = fields.place(index)
      let bytes = fields.bytes.span
      taker.take(bytes.extracting(place.nameRange), bytes.extracting(place.valueRange))
      return place.size
    }
    guard index > 0, let place = table.place(index &- StaticFields.count &- 1) else { throw Fault() }
    let bytes = table.bytes.span
    taker.take(bytes.extracting(place.nameRange), bytes.extracting(place.valueRange))
    return place.size
  }

  private mutating func takeLiteral(
    _ bytes: Span<UInt8>, _ index: inout Int, into taker: inout some Taker
  ) throws(Fault) -> Int {
    let start = index
    let isAdded = bytes[index] & 0x40 != 0
    let number = try Self.integer(bytes, &index, bits: isAdded ? 6 : 4)
    let from = texts.writerIndex
    if number == 0 {
      let name = try text(bytes, &index)
      guard !name.range.isEmpty else { throw Fault() }
      let value = try text(bytes, &index)
      let held = texts
      let decoded = held.readableBytesUInt8Span
      let nameBytes = name.isDecoded ? decoded.extracting(name.range) : bytes.extracting(name.range)
      let valueBytes = value.isDecoded ? decoded.extracting(value.range) : bytes.extracting(value.range)
      taker.take(nameBytes, valueBytes)
      if isAdded { table.add(nameBytes, valueBytes) }
      return nameBytes.count &+ valueBytes.count &+ 32
    }
    if number <= StaticFields.count {
      let fields = StaticFields.table
      let value = try text(bytes, &index)
      let name = fields.bytes.span.extracting(fields.place(number).nameRange)
      let held = texts
      let decoded = held.readableBytesUInt8Span
      let valueBytes = value.isDecoded ? decoded.extracting(value.range) : bytes.extracting(value.range)
      taker.take(name, valueBytes)
      if isAdded {
        table.add(name, valueBytes)
      } else if number == StaticFields.path || number == StaticFields.path + 1 {
        taker.pathStood(at: start..<index)
      }
      return name.count &+ valueBytes.count &+ 32
    }
    guard let place = table.place(number &- StaticFields.count &- 1) else { throw Fault() }
    // Copied: the new field may displace the one that its name is from.
    texts.writeBytes(table.bytes[place.nameRange])
    let nameRange = from..<from &+ place.name
    let value = try text(bytes, &index)
    let held = texts
    let decoded = held.readableBytesUInt8Span
    let name = decoded.extracting(nameRange)
    let valueBytes = value.isDecoded ? decoded.extracting(value.range) : bytes.extracting(value.range)
    taker.take(name, valueBytes)
    if isAdded { table.add(name, valueBytes) }
    return name.count &+ valueBytes.count &+ 32
  }

  /// RFC 7541 §5.2.
  private mutating func text(_ bytes: Span<UInt8>, _ index: inout Int) throws(Fault) -> Text {
    guard let (range, isCoded) = try Self.text(bytes, &index) else { throw Fault() }
    guard isCoded else { return Text(isDecoded: false, range: range) }
    let start = texts.writerIndex
    guard HuffmanCode.standard.decode(bytes.extracting(range), into: &texts) else { throw Fault() }
    return Text(isDecoded: true, range: start..<texts.writerIndex)
  }

  /// The bytes of a text, and whether they are in the code of Huffman. `index` is then behind them.
  static func text(
    _ bytes: Span<UInt8>, _ index: inout Int
  ) throws(Fault) -> (range: Range<Int>, isCoded: Bool)? {
    guard index < bytes.count else { return nil }
    let isCoded = bytes[index] & 0x80 != 0
    let length = try integer(bytes, &index, bits: 7)
    guard length <= bytes.count &- index else { return nil }
    defer { index &+= length }
    return (index..<index &+ length, isCoded)
  }

  /// A number whose first byte has so many bits of it (RFC 7541 §5.1). No number here needs more than four bytes.
  private static func integer(_ bytes: Span<UInt8>, _ index: inout Int, bits: Int) throws(Fault) -> Int {
    guard index < bytes.count else { throw Fault() }
    let mask = 1 << bits &- 1
    var value = Int(bytes[index]) & mask
    index &+= 1
    guard value == mask else { return value }
    var shift = 0
    while true {
      guard index < bytes.count, shift < 28 else { throw Fault() }
      let byte = bytes[index]
      index &+= 1
      value &+= Int(byte & 0x7F) << shift
      shift &+= 7
      if byte & 0x80 == 0 { return value }
    }
  }
}
