internal import FMP4
internal import Glibc
internal import NIOCore
internal import Storage

/// Reads heads and boxes of a recording's file on a thread of a pool: it may wait for the disk. Offsets count from
/// the first byte that was recorded, wherever that lies by now.
struct RecordingFileReader: Sendable {
  let file: SharedFile

  /// The disk does not give what is asked for.
  struct Unreadable: Error, CustomStringConvertible {
    var offset: UInt64
    /// errno's.
    var code: CInt
    var description: String { "the recording cannot be read at \(offset): \(String(cString: strerror(code)))" }
  }

  /// Up to `count` bytes; fewer at the end. Tries again while the bytes are being pushed back.
  func read(at offset: UInt64, count: Int) throws(Unreadable) -> ByteBuffer {
    for _ in 0..<Self.attempts {
      switch file.read(at: Int(clamping: offset), count: count) {
      case .read(let bytes): return bytes
      case .moving: usleep(Self.pause)
      case .failed(let code): throw Unreadable(offset: offset, code: code)
      }
    }
    throw Unreadable(offset: offset, code: EAGAIN)
  }

  private static let attempts = 30_000
  /// Microseconds.
  private static let pause: UInt32 = 1000

  /// Walks over a stretch of the file. `body` is given what is found and tells whether to go on.
  func walk(
    _ range: Range<UInt64>, tracks: [TrackDescription] = [], _ body: (FragmentWalker.Step) -> Bool
  ) throws(Unreadable) {
    var walker = FragmentWalker(range, tracks: tracks)
    while true {
      switch walker.next() {
      case .read(let offset, let length): walker.receive(try read(at: offset, count: length))
      case .finished: return
      case let step: if !body(step) { return }
      }
    }
  }

  /// Walks over a stretch of the file whose tracks, and what else its fragments leave out, are told at `movie`.
  func walk(
    _ range: Range<UInt64>, movie: UInt64, _ body: (FragmentWalker.Step) -> Bool
  ) throws(Unreadable) {
    guard movie <= range.upperBound else { return }
    var walker = FragmentWalker(movie..<range.upperBound)
    var isInside = false
    while true {
      switch walker.next() {
      case .read(let offset, let length): walker.receive(try read(at: offset, count: length))
      case .finished: return
      case .tracks where !isInside:
        isInside = true
        walker.skip(to: range.lowerBound)
      case let step: if !body(step) { return }
      }
    }
  }

  /// The tracks that the boxes at an offset tell of.
  func tracks(at offset: UInt64, end: UInt64) throws(Unreadable) -> [TrackDescription]? {
    var found: [TrackDescription]?
    try walk(offset..<end) { step in
      if case .tracks(let tracks, _) = step { found = tracks }
      return false
    }
    return found
  }

  // MARK: The index

  /// Where the parts of a file of `size` bytes lie; nil for one that weir's recordings do not look like.
  func outline(size: UInt64) throws(Unreadable) -> FileOutline? {
    try FileOutline(size: size, read)
  }

  /// The index of a fragmented file of that length: by its fragments' heads.
  func index(length: UInt64) throws(Unreadable) -> RecordingIndex {
    var indexer = RecordingIndexer()
    try walk(0..<length) { step in
      switch step {
      case .tracks(let tracks, let offset): indexer.add(.tracks(tracks, offset: offset))
      case .fragment(let walked): indexer.add(.fragment(walked))
      case .read, .finished: break
      }
      return true
    }
    return indexer.finished
  }
}
