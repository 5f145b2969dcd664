package import FMP4
package import NIOCore

/// A video or audio frame on its way to a sample.
enum MediaUnit {
  case video(VideoTrack.Unit)
  case audio(AudioTrack.Unit)

  var track: TrackID {
    switch self {
    case .video(let unit): unit.track
    case .audio(let unit): unit.track
    }
  }

  /// Nanoseconds on the publication's timeline.
  var time: Int64 {
    switch self {
    case .video(let unit): unit.time
    case .audio(let unit): unit.time
    }
  }

  var byteCount: Int {
    switch self {
    case .video(let unit): unit.payload.readableBytes
    case .audio(let unit): unit.payload.readableBytes
    }
  }

  var kind: MediaKind {
    switch self {
    case .video: .video
    case .audio: .audio
    }
  }
}

/// Buffer for the start of a publication until its tracks are known. In order of arrival.
package struct StartupBuffer {
  private var units: [MediaUnit] = []
  /// Bytes with which it is full, if they are fewer than usual.
  package var most = Int.max
  private(set) var byteCount = 0

  var isEmpty: Bool { units.isEmpty }

  /// The limits are reached.
  var isFull: Bool {
    units.count >= PublicationLimits.heldSamples || byteCount >= min(most, PublicationLimits.heldBytes)
  }

  mutating func append(_ unit: MediaUnit) {
    units.append(unit)
    byteCount += unit.byteCount
  }

  /// Adds NAL units to the newest frame of a track of video, up to so many bytes. False if none waits, or it would be too long.
  package mutating func extend(_ track: TrackID, by bytes: ByteBuffer, most: Int) -> Bool {
    guard !isFull, let place = units.lastIndex(where: { $0.track == track }), case .video(var unit) = units[place],
      bytes.readableBytes <= most &- unit.payload.readableBytes
    else { return false }
    // The only reference is this one then, so that nothing is copied.
    var rest = unit
    rest.payload = ByteBuffer()
    units[place] = .video(rest)
    unit.payload.writeImmutableBuffer(bytes)
    units[place] = .video(unit)
    byteCount += bytes.readableBytes
    return true
  }

  /// Drops what waits of a track: it begins later.
  mutating func forget(_ track: TrackID, to out: inout [PublicationAction]) {
    for unit in units where unit.track == track { out.append(.inBand(.early(unit.kind))) }
    units.removeAll { $0.track == track }
    byteCount = units.reduce(0) { $0 + $1.byteCount }
  }

  /// Removes and returns everything.
  mutating func takeAll() -> [MediaUnit] {
    defer { (units, byteCount) = ([], 0) }
    return units
  }

  var firstFrame: VideoTrack.Unit? {
    for case .video(let unit) in units { return unit }
    return nil
  }

  /// Time of the first unit of a track that is not earlier than `floor`, in nanoseconds.
  func firstTime(of track: TrackID, from floor: Int64) -> Int64? {
    units.first { $0.track == track && $0.time >= floor }?.time
  }
}
