package import NIOCore

/// Walks over the boxes of a file or of a part of it. A value type: it asks for byte ranges, and the caller reads the
/// file. Each box is returned once. Its content is skipped unless the caller calls `enter` or `want`.
package struct BoxWalk: Sendable {
  package enum Step: Sendable {
    /// The caller reads these bytes of the file and passes them to `receive`.
    case read(offset: UInt64, length: Int)
    case box(BoxHeader)
    /// The payload that `want` asked for.
    case payload(BoxView)
    /// No room is left for a box.
    case end
  }

  /// Offset of the box returned last, or of the next one.
  package private(set) var position: UInt64
  /// Error at which `box` and `payload` ended the walk.
  package private(set) var failure: BoxError?
  /// Types of the boxes that the walk has entered, and the end of each level. The first end is that of the range.
  private var path: [FourCC]
  private var ends: [UInt64]
  private var state = State.header
  /// Reads extend to the end of a block of this many bytes.
  private let block: UInt64
  private var asked: (offset: UInt64, length: Int) = (0, 0)
  /// The bytes received last, and their offset in the file.
  private var window = ByteBuffer()
  private var windowStart: UInt64 = 0

  private enum State {
    case header
    case told(BoxHeader)
    /// The first bytes of its payload are wanted, as many as stated.
    case wanted(BoxHeader, UInt64)
    /// Fewer bytes came than were asked for.
    case short
    case over
  }

  /// Block size in bytes: a memory page, and mostly a disk block. Reading one byte of a block reads all of it anyway.
  package static let page = 4096

  /// `path` lists the boxes that enclose the range. With blocks of one byte, only the needed bytes are asked for.
  package init(_ stretch: Range<UInt64>, of path: [FourCC] = [], block: Int = 1) {
    position = stretch.lowerBound
    ends = [stretch.upperBound]
    self.path = path
    self.block = UInt64(max(1, block))
  }

  /// Takes the bytes that were asked for. Fewer bytes end the walk.
  package mutating func receive(_ bytes: ByteBuffer) {
    guard bytes.readableBytes == asked.length else { return state = .short }
    (window, windowStart) = (bytes, asked.offset)
  }

  /// Continues the walk. If the next bytes are not a box, it throws once and ends.
  package mutating func next() throws(BoxError) -> Step {
    switch state {
    case .over: return .end
    case .short:
      state = .over
      throw BoxError(.truncated, path, at: position)
    case .wanted(let box, let count):
      guard let bytes = known(from: box.payload.lowerBound, count) else {
        return read(from: box.payload.lowerBound, count)
      }
      state = .told(box)
      return .payload(BoxView(box, bytes, in: path))
    case .told(let box): go(to: box.range.upperBound)
    case .header: break
    }
    while ends.count > 1, room < BoxHeader.shortest { leave() }
    guard room >= BoxHeader.shortest, let end = ends.last else {
      state = .over
      return .end
    }
    let count = min(room, UInt64(BoxHeader.longest))
    guard let bytes = known(from: position, count) else { return read(from: position, count) }
    state = .over
    let box = try BoxHeader(bytes, in: position..<end, of: path)
    state = .told(box)
    return .box(box)
  }

  /// Enters the last box: its children come next, then the boxes after it.
  package mutating func enter() {
    guard case .told(let box) = state else { return }
    path.append(box.type)
    ends.append(box.range.upperBound)
    go(to: box.payload.lowerBound)
  }

  /// Enters the last box and ends the walk after its children.
  package mutating func narrow() {
    enter()
    if let end = ends.last { ends = [end] }
  }

  /// Asks for the payload of the last box, or for its first `count` bytes.
  package mutating func want(_ count: UInt64 = .max) {
    guard case .told(let box) = state else { return }
    state = .wanted(box, min(count, box.payloadSize))
  }

  /// Asks for the whole payload. Throws if the box has more bytes than `limit`.
  package mutating func wantWhole(atMost limit: UInt64) throws(BoxError) {
    guard case .told(let box) = state else { return }
    guard box.size <= limit else {
      throw BoxError(.large(size: box.size), path + [box.type], at: box.range.lowerBound)
    }
    want()
  }

  /// Continues at a later box.
  package mutating func skip(to offset: UInt64) {
    if case .told(let box) = state { position = box.range.upperBound }
    go(to: max(position, offset))
  }

  /// Bytes left in the current level.
  private var room: UInt64 { ends.last.map { $0 > position ? $0 - position : 0 } ?? 0 }

  private mutating func go(to offset: UInt64) {
    position = offset
    state = .header
  }

  private mutating func leave() {
    position = max(position, ends.removeLast())
    path.removeLast()
  }

  private mutating func read(from offset: UInt64, _ count: UInt64) -> Step {
    let left = (ends.first ?? offset) - offset
    // The headers of a fragment lie close together, so a read takes at least a quarter of a block.
    let least = max(count, min(left, block / 4))
    let beyond = (offset + least) % block
    asked = (offset, Int(clamping: least + min(left - least, beyond == 0 ? 0 : block - beyond)))
    return .read(offset: offset, length: asked.length)
  }

  /// Bytes that were received already.
  private func known(from offset: UInt64, _ count: UInt64) -> ByteBuffer? {
    guard count > 0 else { return ByteBuffer() }
    let size = UInt64(window.readableBytes)
    guard offset >= windowStart, offset - windowStart <= size, size - (offset - windowStart) >= count else {
      return nil
    }
    return window.getSlice(at: window.readerIndex + Int(offset - windowStart), length: Int(count))
  }
}

/// Reads bytes of a file. Returns fewer than asked for only at the end of the file.
package typealias ByteSource<E: Error> = (_ offset: UInt64, _ length: Int) throws(E) -> ByteBuffer

extension BoxWalk {
  /// The next box, read through `read`. Nil at the end, and if the next bytes are not a box.
  package mutating func box<E: Error>(_ read: ByteSource<E>) throws(E) -> BoxHeader? {
    guard case .box(let box)? = try advance(read) else { return nil }
    return box
  }

  /// The payload of the last box. Nil if it is not there.
  package mutating func payload<E: Error>(_ read: ByteSource<E>) throws(E) -> BoxView? {
    want()
    guard case .payload(let view)? = try advance(read) else { return nil }
    return view
  }

  private mutating func advance<E: Error>(_ read: ByteSource<E>) throws(E) -> Step? {
    while true {
      let step: Step
      do throws(BoxError) {
        step = try next()
      } catch {
        failure = error
        return nil
      }
      guard case .read(let offset, let length) = step else { return step }
      receive(try read(offset, length))
    }
  }
}
