public import FMP4
public import NIOCore

/// A coded video or audio frame from a container.
public struct WireUnit: Sendable {
  /// Its track. A track keeps its kind as long as the publication lasts.
  public var track: TrackID
  public var coding: CodecID
  /// Decode time in nanoseconds of the publisher's clock (`WireClock`).
  public var time: Int64
  /// Composition offset in nanoseconds, for video.
  public var composition: Int64 = 0
  /// The publisher did not state its time: it is counted on from the unit before.
  public var isCountedOn = false
  /// As in the codec's samples: NAL units with their lengths, open bitstream units, or one audio frame.
  public var payload: ByteBuffer

  public init(
    track: TrackID, coding: CodecID, time: Int64, composition: Int64 = 0, isCountedOn: Bool = false, payload: ByteBuffer
  ) {
    (self.track, self.coding, self.time, self.composition, self.isCountedOn) = (
      track, coding, time, composition, isCountedOn
    )
    self.payload = payload
  }
}
