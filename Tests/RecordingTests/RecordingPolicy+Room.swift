import Recording
import RecordingFormat

extension RecordingPolicy {
  /// Files that cannot become large keep none, so that on tmpfs they are copied.
  static var withoutRoomInFront: RecordingPolicy {
    var policy = RecordingPolicy()
    policy.maximumBytes = UInt64(MoovReservation.unit) * 32 - 1
    return policy
  }
}
