internal import FMP4
internal import NIOCore

/// A request to make a JPEG of a key frame. It needs no earlier configuration.
struct StillImageRequest: Sendable, Hashable {
  var codec: CodecID
  /// The decoder configuration record.
  var record: [UInt8]
  /// Size in square samples, before rotation.
  var width: UInt16
  var height: UInt16
  var rotation: Rotation
  /// A sync sample as stored by the track.
  var sample: ByteBuffer

  func write(to out: inout ByteBuffer) {
    out.writeInteger(codec.workerNumber)
    out.writeInteger(width)
    out.writeInteger(height)
    out.writeInteger(rotation.rawValue)
    out.writeInteger(UInt32(clamping: record.count))
    out.writeBytes(record)
    out.writeImmutableBuffer(sample)
  }
}

extension StillImageRequest {
  init(reading body: inout ByteBuffer) throws(TranscodeProtocolError) {
    guard let codec = CodecID(workerNumberIn: &body, of: .video),
      let width: UInt16 = body.readInteger(), let height: UInt16 = body.readInteger(),
      let rotation = body.readInteger(as: UInt16.self).flatMap(Rotation.init(rawValue:)),
      let count: UInt32 = body.readInteger(), count <= TranscodeLimits.recordBytes,
      let record = body.readBytes(length: Int(count)), body.readableBytes <= TranscodeLimits.stillSampleBytes
    else { throw TranscodeProtocolError(description: "an invalid JPEG request") }
    self.init(codec: codec, record: record, width: width, height: height, rotation: rotation, sample: body)
  }

  /// Throws if the track has no video, or if the request would be too large for a worker.
  init(of sample: ByteBuffer, track: TrackDescription) throws(StillImageError) {
    guard let size = track.codec.displaySize else {
      throw StillImageError(.sample, "track \(track.id) is not video")
    }
    let record = track.codec.record()
    guard record.count <= TranscodeLimits.recordBytes else {
      throw StillImageError(
        .sample, "its configuration has \(record.count) bytes; the limit is \(TranscodeLimits.recordBytes)")
    }
    guard sample.readableBytes <= TranscodeLimits.stillSampleBytes else {
      throw StillImageError(
        .sample, "its key frame has \(sample.readableBytes) bytes; the limit is \(TranscodeLimits.stillSampleBytes)")
    }
    self.init(
      codec: track.codec.id, record: record, width: UInt16(clamping: size.width), height: UInt16(clamping: size.height),
      rotation: track.rotation, sample: sample)
  }
}
