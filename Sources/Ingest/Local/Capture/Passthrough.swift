internal import Base
internal import FMP4
internal import NIOCore

/// Passes on video that the camera encodes itself (H.264), unchanged. Used on one thread.
final class Passthrough {
  private let rotation: Rotation
  private var configuration: H264.Configuration?
  /// Frames before the first key frame are useless, because they refer to missing ones.
  private var hasBegun = false

  init(rotation: Rotation) { self.rotation = rotation }

  /// Passes a frame on. True if it was usable. Calls `beginning` before the first frame.
  func pass(
    _ bytes: UnsafeRawBufferPointer, at time: MonotonicTime, _ sink: any EncodedFrameSink, beginning: () -> Void
  ) -> Bool {
    let unit = H264.accessUnit(annexB: ByteBuffer(bytes: bytes))
    if !unit.parameterSets.isEmpty {
      if let known = configuration {
        configuration = known.updated(withParameterSets: unit.parameterSets) ?? known
      } else {
        configuration = try? H264.Configuration(
          sps: unit.parameterSets.filter { ($0.first ?? 0) & 31 == 7 },
          pps: unit.parameterSets.filter { ($0.first ?? 0) & 31 == 8 })
      }
    }
    guard let configuration, unit.payload.readableBytes > 0, hasBegun || unit.isSync else {
      return false
    }
    if !hasBegun { beginning() }
    hasBegun = true
    if unit.isSync { sink.describe(video: Codec(configuration), rotation: rotation) }
    sink.video(
      presentation: time, decode: time, isSync: unit.isSync, isDisposable: unit.isDisposable, payload: unit.payload)
    return true
  }
}
