internal import FMP4
internal import NIOCore

/// A key frame of which the worker is to make a JPEG. It needs no configuration before it.
struct StillImageRequest: Sendable, Hashable {
  var codec: CodecID
  /// The decoder configuration record.
  var record: [UInt8]
  /// Square samples, before the picture is turned.
  var width: UInt16
  var height: UInt16
  var rotation: Rotation
  /// A sync sample as the track stores it.
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
    else { throw TranscodeProtocolError(description: "a still picture that makes no sense") }
    self.init(codec: codec, record: record, width: width, height: height, rotation: rotation, sample: body)
  }

  /// Throws where the track has no pictures, or they are larger than a worker is told.
  init(of sample: ByteBuffer, track: TrackDescription) throws(StillImageError) {
    guard let size = track.codec.displaySize else {
      throw StillImageError(.sample, "track \(track.id) has no pictures")
    }
    let record = track.codec.record()
    guard record.count <= TranscodeLimits.recordBytes else {
      throw StillImageError(
        .sample, "its configuration has \(record.count) bytes; \(TranscodeLimits.recordBytes) is the most")
    }
    guard sample.readableBytes <= TranscodeLimits.stillSampleBytes else {
      throw StillImageError(
        .sample, "its key frame has \(sample.readableBytes) bytes; \(TranscodeLimits.stillSampleBytes) is the most")
    }
    self.init(
      codec: track.codec.id, record: record, width: UInt16(clamping: size.width), height: UInt16(clamping: size.height),
      rotation: track.rotation, sample: sample)
  }
}
