internal import CLibAV
internal import Glibc
internal import LibAV
internal import NIOCore

/// A decoded frame, shared by the encoders that scale it. Never changed.
final class DecodedFrame: @unchecked Sendable {
  let image: VideoFrame
  /// Ticks of the source.
  let time: Int64
  /// Whether the rungs make a key frame of it.
  let isKey: Bool

  init(image: VideoFrame, time: Int64, isKey: Bool) {
    self.image = image
    self.time = time
    self.isKey = isKey
  }
}

/// Decodes the source: coded frames go in, in decoding order; frames come out in presentation order. It also decides
/// which frames become key frames of the rungs: for each sync sample, the first frame shown of its GOP. In an open GOP
/// some frames are shown before the sync sample itself, and the source's segment begins with them. Used on one thread.
final class SourceDecoder {
  private let decoder: PacketDecoder
  /// Presentation times from which the next key frames are due.
  private var keyTimes: [Int64] = []
  private var lastTime = Int64.min

  init(_ configuration: TranscodeConfiguration) throws(LibAVError) {
    decoder = try PacketDecoder(
      configuration.codec, record: configuration.record, maximumPixels: TranscodeLimits.maximumPixels,
      timescale: configuration.timescale)
  }

  /// Takes a coded frame and outputs the frames that can be shown by now. Throws if the bytes cannot be decoded. Later
  /// frames can still be decoded, from the next key frame on.
  func decode(
    _ frame: TranscodeRequest.SourceFrame, _ receive: (DecodedFrame) -> Void
  ) throws(LibAVError) {
    if frame.isSync {
      if keyTimes.count < 256 { keyTimes.append(frame.presentationTime) }
    } else if lastTime != .min, let key = keyTimes.last {
      // Nothing can be decoded before the first key frame.
      keyTimes[keyTimes.count - 1] = min(key, frame.presentationTime)
    }
    let code = try decoder.send(frame)
    try collect(receive)
    try LibAVError.check(code, "decode a frame of \(frame.payload.readableBytes) bytes")
  }

  /// Outputs the frames still inside. The next coded frame must be a key frame.
  func drain(_ receive: (DecodedFrame) -> Void) throws(LibAVError) {
    defer {
      decoder.flush()
      keyTimes = []
      lastTime = .min
    }
    guard decoder.sendEnd() == 0 else { return }
    try collect(receive)
  }

  private func collect(_ receive: (DecodedFrame) -> Void) throws(LibAVError) {
    while true {
      let image = try VideoFrame()
      let code = decoder.receive(image.frame)
      if code == weir_averror_again || code == weir_averror_eof { return }
      try LibAVError.check(code, "take a frame from the decoder")
      let stated = image.frame.pointee.pts
      let time = stated == Int64.min ? image.frame.pointee.best_effort_timestamp : stated
      // Broken streams repeat times, but encoders need rising ones.
      guard time > lastTime else { continue }
      lastTime = time
      let isKey = keyTimes.contains { $0 <= time }
      keyTimes.removeAll { $0 <= time }
      receive(DecodedFrame(image: image, time: time, isKey: isKey))
    }
  }
}
