internal import RecordingFormat

extension RecordingPolicy {
  /// Bytes that a file reserves at its start for the moov of its movie. Where the length or size of the file is limited, no more
  /// than that can need.
  var moovReservation: Int {
    var room = MoovReservation.usual
    if let longest = [split.longest, maximumDuration].compactMap(\.self).min() {
      let hours = Double(longest) / 3_600_000_000_000
      room = min(room, Int(hours * Self.headBytesAnHour) + MoovReservation.unit)
    }
    // The reservation counts as part of the file's size.
    if let maximumBytes { room = Int(clamping: min(UInt64(room), maximumBytes / 32)) }
    return room / MoovReservation.unit * MoovReservation.unit
  }

  /// For 60 frames a second with B-frames, and audio.
  private static let headBytesAnHour = 6_000_000.0
}

extension RecordingSplit {
  /// Length of the longest file, in nanoseconds of media, not counting the rest of a last segment; nil for no limit.
  fileprivate var longest: Int64? {
    switch self {
    case .never: nil
    case .length(let length), .clock(let length): length
    }
  }
}
