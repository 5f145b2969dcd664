internal import CLibAV
internal import Glibc
internal import NIOCore

/// A decoded picture, shared by the encoders that scale it: nobody changes it.
final class DecodedFrame: @unchecked Sendable {
  let picture: VideoFrame
  /// Ticks of the source.
  let time: Int64
  /// The rungs' next key frame.
  let isKey: Bool

  init(picture: VideoFrame, time: Int64, isKey: Bool) {
    self.picture = picture
    self.time = time
    self.isKey = isKey
  }
}

/// The source's decoder: coded pictures in decoding order in, pictures in the order in which they are shown out. It
/// knows which of them a key frame must be made of: the first that is shown of those that a sync sample begins. In an open
/// group of pictures some are shown before the sync sample itself, and the source's segment begins with them. It lives on one
/// thread.
final class SourceDecoder {
  private let decoder: PacketDecoder
  /// From which presentation times on the next key frames are to be made, whose pictures have not come yet.
  private var keyTimes: [Int64] = []
  private var lastTime = Int64.min

  init(_ configuration: TranscodeConfiguration) throws(LibAVError) {
    decoder = try PacketDecoder(
      configuration.codec, record: configuration.record, largestPicture: TranscodeLimits.pictureSamples,
      timescale: configuration.timescale)
  }

  /// Takes a coded picture and gives out what can be shown by now. Throws where the bytes make no picture; the next
  /// ones can be decoded all the same, from a key frame on.
  func decode(
    _ picture: TranscodeRequest.SourcePicture, _ receive: (DecodedFrame) -> Void
  ) throws(LibAVError) {
    if picture.isSync {
      if keyTimes.count < 256 { keyTimes.append(picture.presentationTime) }
    } else if lastTime != .min, let key = keyTimes.last {
      // Before the first key frame of all nothing can be decoded.
      keyTimes[keyTimes.count - 1] = min(key, picture.presentationTime)
    }
    let code = try decoder.send(picture)
    try collect(receive)
    try LibAVError.check(code, "decode a picture of \(picture.payload.readableBytes) bytes")
  }

  /// Gives out the pictures that wait for their turn. The next coded picture must be a key frame.
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
      let picture = try VideoFrame()
      let code = decoder.receive(picture.frame)
      if code == weir_averror_again || code == weir_averror_eof { return }
      try LibAVError.check(code, "take a picture from the decoder")
      let stated = picture.frame.pointee.pts
      let time = stated == Int64.min ? picture.frame.pointee.best_effort_timestamp : stated
      // Broken streams repeat times; encoders take only ones that rise.
      guard time > lastTime else { continue }
      lastTime = time
      let isKey = keyTimes.contains { $0 <= time }
      keyTimes.removeAll { $0 <= time }
      receive(DecodedFrame(picture: picture, time: time, isKey: isKey))
    }
  }
}
