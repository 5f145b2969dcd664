package import NIOCore

/// Walks over the boxes of a file, or of a stretch of one. A value: it says which bytes it wants next, and is given them;
/// it knows no file. Each box is told once, and is passed over unless it is entered or its payload is wanted.
package struct BoxWalk: Sendable {
  package enum Step: Sendable {
    /// `receive` wants these bytes of the file.
    case read(offset: UInt64, length: Int)
    case box(BoxHeader)
    /// What `want` asked for.
    case payload(BoxView)
    /// In what is left there is no room for a box.
    case end
  }

  /// Where the box begins that was told last, or is next.
  package private(set) var position: UInt64
  /// What `box` and `payload` met that is no box, or not whole.
  package private(set) var failure: BoxError?
  /// The boxes that the walk is in, and where each level ends: first the stretch, then what was entered.
  private var path: [FourCC]
  private var ends: [UInt64]
  private var state = State.header
  /// Bytes are asked for up to the end of a block of so many.
  private let block: UInt64
  private var asked: (offset: UInt64, length: Int) = (0, 0)
  /// The bytes that were given last, and where they lie.
  private var window = ByteBuffer()
  private var windowStart: UInt64 = 0

  private enum State {
    case header
    case told(BoxHeader)
    /// So many bytes of its payload are wanted.
    case wanted(BoxHeader, UInt64)
    /// Fewer bytes came than were asked for.
    case short
    case over
  }

  /// A file's blocks, in memory and mostly on the disk: who asks for a byte of one has it read anyway.
  package static let page = 4096

  /// `path` are the boxes that the stretch lies in. With blocks of one byte only what is needed is asked for.
  package init(_ stretch: Range<UInt64>, of path: [FourCC] = [], block: Int = 1) {
    position = stretch.lowerBound
    ends = [stretch.upperBound]
    self.path = path
    self.block = UInt64(max(1, block))
  }

  /// The bytes that were asked for; fewer end the walk.
  package mutating func receive(_ bytes: ByteBuffer) {
    guard bytes.readableBytes == asked.length else { return state = .short }
    (window, windowStart) = (bytes, asked.offset)
  }

  /// Goes on. Throws once where what comes is no box, and is over then.
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

  /// The boxes within the one that was told last come next, and then those behind it.
  package mutating func enter() {
    guard case .told(let box) = state else { return }
    path.append(box.type)
    ends.append(box.range.upperBound)
    go(to: box.payload.lowerBound)
  }

  /// The same, and nothing behind it comes any more.
  package mutating func narrow() {
    enter()
    if let end = ends.last { ends = [end] }
  }

  /// The payload of the box that was told last comes next, or as many of its first bytes.
  package mutating func want(_ count: UInt64 = .max) {
    guard case .told(let box) = state else { return }
    state = .wanted(box, min(count, box.payloadSize))
  }

  /// The same with all of its payload, unless the box has more bytes than `limit`.
  package mutating func wantWhole(atMost limit: UInt64) throws(BoxError) {
    guard case .told(let box) = state else { return }
    guard box.size <= limit else {
      throw BoxError(.large(size: box.size), path + [box.type], at: box.range.lowerBound)
    }
    want()
  }

  /// Goes on at a box further on.
  package mutating func skip(to offset: UInt64) {
    if case .told(let box) = state { position = box.range.upperBound }
    go(to: max(position, offset))
  }

  /// What the level has from here on, in bytes.
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
    // The heads of a fragment lie close together: the beginning of them is not worth a read.
    let least = max(count, min(left, block / 4))
    let beyond = (offset + least) % block
    asked = (offset, Int(clamping: least + min(left - least, beyond == 0 ? 0 : block - beyond)))
    return .read(offset: offset, length: asked.length)
  }

  /// Bytes that were given already.
  private func known(from offset: UInt64, _ count: UInt64) -> ByteBuffer? {
    guard count > 0 else { return ByteBuffer() }
    let size = UInt64(window.readableBytes)
    guard offset >= windowStart, offset - windowStart <= size, size - (offset - windowStart) >= count else {
      return nil
    }
    return window.getSlice(at: window.readerIndex + Int(offset - windowStart), length: Int(count))
  }
}

/// Gives bytes of a file: fewer than are asked for only where it ends.
package typealias ByteSource<E: Error> = (_ offset: UInt64, _ length: Int) throws(E) -> ByteBuffer

extension BoxWalk {
  /// The next box, by what `read` gives; nil at the end, and where what comes is no box.
  package mutating func box<E: Error>(_ read: ByteSource<E>) throws(E) -> BoxHeader? {
    guard case .box(let box)? = try advance(read) else { return nil }
    return box
  }

  /// The payload of the box that was told last; nil where it is not there.
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
