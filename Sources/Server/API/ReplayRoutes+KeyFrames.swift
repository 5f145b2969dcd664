internal import Answers
internal import Delivery
internal import FMP4
internal import HTTP
internal import NIOCore
internal import Publishing
internal import Recording
internal import RecordingFiles

/// `/api/v1/recordings/{stream}/{file}/keyframes`: the times at which decoding can begin, and their wall-clock times. They come
/// from the index in the recording's own file, or from the part written so far.
extension ReplayRoutes {
  func keyFrames(_ request: APIRequest) -> HTTPAnswer {
    guard let (stream, name) = Self.recording(request) else { return .now(missing) }
    return open(stream, name.stem, for: request.http.client, on: request.eventLoop) { source in
      .json(RecordedKeyFrames(source.withIndex { index in copy index }))
    }
  }

  /// The recording of a request, named with or without its ending.
  static func recording(_ request: APIRequest) -> (stream: StreamName, name: RecordingName)? {
    guard let stream = StreamName(request[0]),
      let name = RecordingName(finished: request[1]) ?? RecordingName(finished: request[1] + ".mp4")
    else { return nil }
    return (stream, name)
  }
}

/// The key frames of a recording, and the clock beside them. Times are seconds on the timeline of the finished movie.
struct RecordedKeyFrames: APIObject {
  /// Length of the recording so far.
  let seconds: Double
  /// In order.
  let keyFrames: [Double]
  let clock: [Moment]

  static let notes: [String: FieldNote] = [
    "seconds": "Length of the recording so far.",
    "keyFrames": "Seconds at which decoding can begin, in order.",
    "clock": "The time of day runs with the media from one of these places to the next.",
  ]

  /// A media time and its wall-clock time. The clock runs with the media up to the next moment.
  struct Moment: APIObject {
    let at: Double
    let time: String
  }

  /// In nanoseconds: the clocks of publishers and servers drift by less from one segment to the next.
  private static let tolerance: UInt64 = 50_000_000

  init(_ index: RecordingIndex) {
    let origin = index.origin
    seconds = Self.rounded((index.end - origin).seconds)
    var keyFrames: [Double] = []
    var clock: [Moment] = []
    var known: (start: MediaTime, wall: WallTime)?
    for segment in index.segments {
      let start = index.start(of: segment)
      let at = Self.rounded((start - origin).seconds)
      if segment.flags.contains(.isIndependent) { keyFrames.append(at) }
      let expected = known.map { $0.wall &+ (start - $0.start).nanoseconds }
      if let expected, (expected &- segment.wallStart).magnitude <= Self.tolerance { continue }
      known = (start, segment.wallStart)
      clock.append(Moment(at: at, time: JSONText.time(segment.wallStart)))
    }
    self.keyFrames = keyFrames
    self.clock = clock
  }

  /// Rounded to microseconds, because the ticks of most timescales are no finite decimals.
  private static func rounded(_ seconds: Double) -> Double { (seconds * 1e6).rounded() / 1e6 }
}
