internal import FMP4
internal import NIOCore

/// A picture or a frame of sound on its way to a sample.
enum MediaUnit {
  case video(VideoIntake.Unit)
  case audio(AudioIntake.Unit)

  /// Milliseconds on the publication's timeline.
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

/// The beginning of a publication, held back until its tracks are known, in the order of arrival.
struct HeldMedia {
  private var units: [MediaUnit] = []
  private var byteCount = 0

  var isEmpty: Bool { units.isEmpty }

  /// More is not held back.
  var isFull: Bool { units.count >= RTMPLimits.gateSamples || byteCount >= RTMPLimits.gateBytes }

  mutating func append(_ unit: MediaUnit) {
    units.append(unit)
    byteCount += unit.byteCount
  }

  mutating func forget(_ kind: MediaKind) {
    units.removeAll { $0.kind == kind }
    byteCount = units.reduce(0) { $0 + $1.byteCount }
  }

  /// Everything, and nothing is left.
  mutating func takeAll() -> [MediaUnit] {
    defer { self = HeldMedia() }
    return units
  }

  var firstPicture: VideoIntake.Unit? {
    for case .video(let unit) in units { return unit }
    return nil
  }

  /// The time of the first sound that is not earlier than `floor`, in milliseconds.
  func firstSound(from floor: Int64) -> Int64? {
    for case .audio(let unit) in units where unit.time >= floor { return unit.time }
    return nil
  }
}
