internal import FMP4
internal import Glibc
internal import NIOCore

extension LiveWindow {
  /// A key frame in memory.
  struct KeyFrame: Sendable {
    /// Media sequence number of the segment that it starts.
    var segment: Int
    var track: TrackDescription
    /// The sample's bytes.
    var range: FileRange
  }

  /// The newest picture that starts a segment and that decoding can start with.
  var newestKeyFrame: KeyFrame? {
    for segment in segments.reversed() where segment.isIndependent {
      guard let track = inits[segment.initVersion]?.tracks.first(.video),
        let run = segment.fragments.first?.run(of: track.id), run.firstSampleLength > 0
      else { continue }
      return KeyFrame(
        segment: segment.sequenceNumber, track: track,
        range: FileRange(file: segment.memory.file, offset: run.mediaOffset, length: run.firstSampleLength))
    }
    return nil
  }
}

extension FileRange {
  /// The bytes. Waits for the disk where the file is on one: not for event loops then.
  func read() throws(StorageError) -> ByteBuffer {
    var bytes = ByteBuffer()
    bytes.reserveCapacity(length)
    while bytes.readableBytes < length {
      let done = bytes.readableBytes
      let count = bytes.writeWithUnsafeMutableBytes(minimumWritableBytes: length - done) { target in
        max(0, pread(file.descriptor, target.baseAddress, length - done, off_t(position + done)))
      }
      if count == 0, errno != EINTR { throw StorageError(operation: "pread", errno: errno) }
    }
    return bytes
  }
}
