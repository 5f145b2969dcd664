internal import FMP4

extension RecordingPolicy {
  /// Bytes that a file keeps in front for its movie's head: no more than it can need where it is known how long or how
  /// large it will become.
  var moovReservation: Int {
    var room = MoovReservation.usual
    if let longest = [split.longest, maximumDuration].compactMap(\.self).min() {
      let hours = Double(longest) / 3_600_000_000_000
      room = min(room, Int(hours * Self.headBytesAnHour) + MoovReservation.unit)
    }
    // It counts among the file's bytes.
    if let maximumBytes { room = Int(clamping: min(UInt64(room), maximumBytes / 32)) }
    return room / MoovReservation.unit * MoovReservation.unit
  }

  /// Of 60 pictures a second with B-frames, and audio.
  private static let headBytesAnHour = 6_000_000.0
}

extension RecordingSplit {
  /// The longest file that it makes, in nanoseconds of media, but for a segment; nil for no limit.
  fileprivate var longest: Int64? {
    switch self {
    case .never: nil
    case .length(let length), .clock(let length): length
    }
  }
}
