internal import FMP4

/// The content of one track in a message.
struct FLVTrackContent<Content> {
  /// The number of Enhanced RTMP v2; 0 in a message with one track.
  var number: UInt8
  var content: Content
}

extension TrackID {
  /// The track with a number of Enhanced RTMP v2. Number 0 is the default track of its kind.
  init(_ kind: MediaKind, flv number: UInt8) { self.init(kind, Int(number) + 1) }
}
