internal import CLibAV
internal import FMP4
internal import Glibc
internal import LibAV
internal import NIOCore

/// Encodes a frame that stands still, and silence, into what a `StillPicture` repeats. Each encoder is closed again.
enum StillEncoder {
  /// Bits of a key frame for each of its pixels, at most. There is one in a second, and it takes nearly all bits.
  private static let bitsPerPixel = 2
  /// Bits per second that even small pictures have.
  private static let leastBitRate = 1_000_000
  /// libx264's CRF: differences are not seen.
  private static let quality = 18
  /// Bits per second; silence needs far less.
  private static let audioBitRate = 64_000
  /// Frames after which the encoder of audio has nothing of its beginning left.
  private static let settled = 8

  /// Codes the frame as often as a pass has frames. Key frames are where a `StillPicture` has them.
  static func video(
    of frame: VideoFrame, matrix: VideoEncoder.Format.Matrix
  ) throws -> (codec: Codec, samples: [Sample]) {
    guard let rate = FrameRate(numerator: StillPicture.timescale, denominator: StillPicture.frameDuration) else {
      preconditionFailure("both numbers of a frame rate are positive")
    }
    let (width, height) = (Int(frame.frame.pointee.width), Int(frame.frame.pointee.height))
    let format = VideoEncoder.Format(
      width: width, height: height, rate: rate, timescale: StillPicture.timescale, ticks: StillPicture.frameDuration,
      matrix: matrix)
    let encoder = try VideoEncoder(
      .x264, format,
      VideoEncoding(
        encoder: .x264, bitRate: max(leastBitRate, width * height * bitsPerPixel), rateControl: .quality(quality),
        preset: .fast, tune: .none,
        keyFrameMilliseconds: Int(StillPicture.keyFrameInterval.nanoseconds / 1_000_000), threads: 1))
    var samples: [Sample] = []
    let ticks = Int64(StillPicture.frameDuration)
    let keep = { (coded: VideoEncoder.CodedFrame) in
      samples.append(
        Sample(
          track: .video, decodeTime: coded.decodeTime * ticks,
          compositionOffset: Int32(clamping: (coded.presentationTime - coded.decodeTime) * ticks),
          duration: StillPicture.frameDuration, isSync: coded.isSync, isDisposable: coded.isDisposable,
          payload: coded.payload))
    }
    for number in 0..<StillPicture.framesPerPass {
      let isKeyFrame = number % StillPicture.framesPerKeyFrame == 0
      try encoder.encode(frame.frame, at: Int64(number), as: isKeyFrame ? .keyFrame : .asEncoderLikes, keep)
    }
    try encoder.finish(keep)
    let isInOrder = samples.enumerated().allSatisfy { number, sample in
      sample.decodeTime == Int64(number) * ticks && sample.compositionOffset == 0
        && sample.isSync == (number % StillPicture.framesPerKeyFrame == 0)
    }
    guard let codec = encoder.codec, samples.count == StillPicture.framesPerPass, isInOrder else {
      throw LibAVError("encode a picture that stands still", code: -EINVAL)
    }
    return (codec, samples)
  }

  /// A coded frame of silence, which can follow itself.
  static func silence() throws -> (codec: Codec, sample: Sample) {
    let encoder = try AudioEncoder(.aac, sampleRate: Int(StillPicture.sampleRate), bitRate: audioBitRate)
    let nothing = [Float](repeating: 0, count: encoder.samplesPerFrame)
    var frames: [ByteBuffer] = []
    for number in 0..<settled {
      try encoder.encode(left: nothing, right: nothing, at: Int64(number * encoder.samplesPerFrame)) {
        frames.append($1)
      }
    }
    guard let frame = frames.last, frames.count > settled / 2 else {
      throw LibAVError("encode silence", code: -EINVAL)
    }
    return (
      encoder.codec,
      Sample(
        track: .audio, decodeTime: 0, duration: UInt32(encoder.samplesPerFrame), isSync: true, payload: frame)
    )
  }
}
