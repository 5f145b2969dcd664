internal import FMP4
internal import Glibc
internal import NIOCore
internal import RecordingFormat

/// Finds and fills the reservation at the start of a file. Waits for the disk.
extension MoovReservation {
  /// The reservation of a file of `size` bytes that is no movie yet; nil if it has none.
  static func find(in descriptor: CInt, size: UInt64, path: String) throws(RecordingError) -> MoovReservation? {
    try find(size: size) { offset, count throws(RecordingError) in
      try RecordingFile.read(from: descriptor, at: offset, count: count, path: path)
    }
  }

  /// Writes the moov into the reservation, durably; the media must be durable before. The first sector is written last, and a
  /// disk writes it as a whole or not at all. Until then the file is what it was.
  func fill(
    with movieHeader: MovieBuilder.SplitHeader, of descriptor: CInt, path: String, calls: DiskCalls
  ) throws(MoovInsertion.Failure) {
    var rest = movieHeader.front
    let first = rest.readSlice(length: min(MoovInsertion.sector, rest.readableBytes)) ?? movieHeader.front
    let before: ByteBuffer
    do throws(RecordingError) {
      before = try RecordingFile.read(from: descriptor, at: 0, count: first.readableBytes, path: path)
      try RecordingFile.write(rest, to: descriptor, at: UInt64(first.readableBytes), path: path, calls: calls)
      let end = UInt64(length - movieHeader.mediaHeader.readableBytes)
      try RecordingFile.write(movieHeader.mediaHeader, to: descriptor, at: end, path: path, calls: calls)
      try Self.sync(descriptor, path, calls)
    } catch {
      throw MoovInsertion.Failure(error: error, remains: .nothing)
    }
    do throws(RecordingError) {
      try RecordingFile.write(first, to: descriptor, at: 0, path: path, calls: calls)
      try Self.sync(descriptor, path, calls)
    } catch {
      // The disk may hold either state, and either is whole.
      let isBack = (try? RecordingFile.write(before, to: descriptor, at: 0, path: path, calls: calls)) != nil
      throw MoovInsertion.Failure(error: error, remains: isBack ? .nothing : .movieHeader)
    }
  }

  private static func sync(_ descriptor: CInt, _ path: String, _ calls: DiskCalls) throws(RecordingError) {
    let code = calls.sync(descriptor)
    guard code == 0 else { throw .system("make durable", path, errno: code) }
  }
}
