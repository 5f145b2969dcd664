package import FMP4
internal import Glibc
package import NIOCore
package import RecordingFormat
package import Storage

/// Reads headers and boxes of a recording's file on a pool thread; it may wait for the disk. Offsets count from the first
/// recorded byte, also after that byte has moved.
package struct RecordingFileReader: Sendable {
  package let file: SharedFile

  package init(file: SharedFile) {
    self.file = file
  }

  /// The disk failed to return the bytes.
  package struct Unreadable: Error, CustomStringConvertible {
    var offset: UInt64
    /// errno of the read.
    var code: CInt
    package var description: String { "the recording cannot be read at \(offset): \(String(cString: strerror(code)))" }
  }

  /// Up to `count` bytes; fewer at the end of the file. Repeats while the bytes are being moved.
  package func read(at offset: UInt64, count: Int) throws(Unreadable) -> ByteBuffer {
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

  /// Walks over a range of the file. `body` receives each step and returns whether to go on.
  package func walk(
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

  /// Walks over a range of the file. The tracks and the defaults of its fragments are read from the boxes at `movie`.
  package func walk(
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

  /// The tracks described by the boxes at an offset.
  package func tracks(at offset: UInt64, end: UInt64) throws(Unreadable) -> [TrackDescription]? {
    var found: [TrackDescription]?
    try walk(offset..<end) { step in
      if case .tracks(let tracks, _) = step { found = tracks }
      return false
    }
    return found
  }

  // MARK: The index

  /// The layout of a file of `size` bytes; nil if it does not look like a recording of weir.
  package func outline(size: UInt64) throws(Unreadable) -> FileOutline? {
    try FileOutline(size: size, read)
  }

  /// The index of a fragmented file of that length, read from the headers of its fragments.
  package func index(length: UInt64) throws(Unreadable) -> RecordingIndex {
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
