internal import Base
internal import CLibAV
internal import FMP4
internal import LibAV
internal import NIOCore

/// Takes coded frames and their codec.
protocol EncodedFrameSink: Sendable {
  /// Describes the video that follows.
  func describe(video codec: Codec, rotation: Rotation)
  func video(
    presentation: MonotonicTime, decode: MonotonicTime, isSync: Bool, isDisposable: Bool, payload: ByteBuffer)
}

/// Encodes frames one after the other. Used on one thread, with which it may be abandoned.
protocol FrameEncoding: AnyObject {
  var encoder: VideoEncoderName { get }
  /// Whether the frame can follow the last one without a new encoder.
  func fits(_ item: QueuedFrame) -> Bool
  func encode(_ item: QueuedFrame, forcingKeyFrame: Bool, _ sink: any EncodedFrameSink) throws
  /// Outputs the frames still in the encoder. It takes no frames afterwards.
  func finish(_ sink: any EncodedFrameSink) throws
}

/// An encoder with its times and key frames.
final class TimedVideoEncoder: FrameEncoding {
  private let video: VideoEncoder
  private let encoding: VideoEncoding
  private let width: Int32
  private let height: Int32
  private var rotation: Rotation
  /// The encoder's time 0.
  private let base: MonotonicTime
  private let interval: Int64
  private let tolerance: Int64
  private var nextKeyFrame: MonotonicTime
  private var last: Int64 = -1

  init(
    first: QueuedFrame, except avoided: Set<VideoEncoderName>, passedOver: (VideoEncoderName, any Error) -> Void
  ) throws {
    let frame = first.image.frame.pointee
    (width, height) = (frame.width, frame.height)
    video = try VideoEncoder.best(
      VideoEncoder.Format(
        width: Int(frame.width), height: Int(frame.height), rate: first.rate, timescale: CaptureMux.videoTimescale,
        matrix: .bt601),
      first.encoding, except: avoided, passedOver: passedOver)
    encoding = first.encoding
    rotation = first.rotation
    base = first.time
    interval = Int64(first.encoding.keyFrameMilliseconds) * 1_000_000
    tolerance = Int64(5e8 / first.rate.framesPerSecond)
    nextKeyFrame = first.time
  }

  var encoder: VideoEncoderName { video.name }

  func fits(_ item: QueuedFrame) -> Bool {
    let frame = item.image.frame.pointee
    return (frame.width, frame.height) == (width, height) && item.encoding == encoding
  }

  func encode(_ item: QueuedFrame, forcingKeyFrame: Bool, _ sink: any EncodedFrameSink) throws {
    let isDue = !video.keepsItsOwnCadence && item.time >= nextKeyFrame &- tolerance
    let isKeyFrame = isDue || forcingKeyFrame || item.rotation != rotation
    rotation = item.rotation
    // Keeps to the cadence, unless it was lost altogether.
    if isDue { nextKeyFrame = max(nextKeyFrame &+ interval, item.time &+ interval / 2) }
    let time = max(MediaTime(nanoseconds: item.time &- base).rescaled(to: CaptureMux.videoTimescale), last + 1)
    last = time
    try video.encode(item.image.frame, at: time, as: isKeyFrame ? .keyFrame : .asEncoderLikes) { give($0, sink) }
  }

  func finish(_ sink: any EncodedFrameSink) throws {
    try video.finish { give($0, sink) }
  }

  private func give(_ coded: VideoEncoder.CodedFrame, _ sink: any EncodedFrameSink) {
    guard let codec = video.codec else { return }
    if coded.isSync { sink.describe(video: codec, rotation: rotation) }
    sink.video(
      presentation: base &+ nanoseconds(coded.presentationTime), decode: base &+ nanoseconds(coded.decodeTime),
      isSync: coded.isSync, isDisposable: coded.isDisposable, payload: coded.payload)
  }

  private func nanoseconds(_ ticks: Int64) -> Int64 {
    MediaTime(ticks: ticks, timescale: CaptureMux.videoTimescale).nanoseconds
  }
}
