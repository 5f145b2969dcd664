internal import FMP4

/// Joins the passes of a looped file. Video frames follow each other without a gap. The audio of each pass begins with
/// its video, to the nearest audio frame. So coded frames join and nothing drifts.
struct FileLoop {
  /// Most units that are read to find the file's beginning.
  static let longestLook = 500
  /// Audio that is longer than the video by more than this lengthens the pass. Less is cut off by the next pass.
  private static let longestTail = MediaTime(milliseconds: 250)

  private struct Line {
    let timescale: UInt32
    /// End of the last unit on the stream's timeline.
    var end: Int64 = 0
    var last: Int64?
    /// Added to the file's times in this pass, once its first unit is placed.
    var shift: Int64?
  }

  /// The file's time that becomes 0.
  private var origin: MediaTime?
  /// Start of this pass: time 0 of the file on the stream's timeline.
  private var start = MediaTime.zero
  private var video: Line?
  private var audio: Line?
  /// Distance from the file's beginning to its first audio.
  private var audioLead = MediaTime.zero

  var hasOrigin: Bool { origin != nil }

  /// Whether a video frame has been placed.
  var hasVideo: Bool { video?.last != nil }

  /// End of the passes so far.
  var end: MediaTime {
    let videoEnd = video.map { MediaTime(ticks: $0.end, timescale: $0.timescale) }
    let audio = audio.map { MediaTime(ticks: $0.end, timescale: $0.timescale) }
    guard let videoEnd else { return audio ?? .zero }
    guard let audio, audio > videoEnd + Self.longestTail else { return videoEnd }
    return audio
  }

  /// `units` are the first of the file.
  mutating func setOrigin(_ units: [MediaFile.Unit]) {
    origin = units.map { MediaTime(ticks: $0.decodeTime, timescale: $0.timescale) }.min() ?? .zero
  }

  /// Begins the next pass.
  mutating func beginPass() {
    start = begin
    video?.shift = nil
    audio?.shift = nil
  }

  /// Audio that outlasted the video continues with the next pass's audio, without waiting for the next video.
  private var begin: MediaTime {
    guard let video, let audio, end == MediaTime(ticks: audio.end, timescale: audio.timescale) else { return end }
    let videoEnd = MediaTime(ticks: video.end, timescale: video.timescale)
    let joined = end - audioLead
    return joined < videoEnd ? videoEnd : joined
  }

  /// The unit as a sample. Nil if it overlaps earlier samples.
  mutating func place(_ unit: MediaFile.Unit) -> Sample? {
    unit.track == .video ? placeVideo(unit) : placeAudio(unit)
  }

  private mutating func placeVideo(_ unit: MediaFile.Unit) -> Sample? {
    var line = video ?? Line(timescale: unit.timescale)
    defer { video = line }
    if line.shift == nil {
      // Decoding starts here in each pass.
      guard unit.isSync else { return nil }
      let nominal = nominalTime(unit)
      // Video joins video, unless audio has outlasted it.
      let joins = line.last != nil && start == MediaTime(ticks: line.end, timescale: line.timescale)
      line.shift = (joins ? line.end : max(nominal, line.end)) &- unit.decodeTime
      if joins { start = MediaTime(ticks: line.end &- (nominal &- ticks(start, unit)), timescale: unit.timescale) }
    }
    let time = unit.decodeTime &+ (line.shift ?? 0)
    if let last = line.last, time <= last { return nil }
    let step = unit.duration > 0 ? Int64(unit.duration) : line.last.map { time &- $0 } ?? 1
    line.last = time
    line.end = time &+ step
    return sample(unit, at: time)
  }

  private mutating func placeAudio(_ unit: MediaFile.Unit) -> Sample? {
    var line = audio ?? Line(timescale: unit.timescale)
    defer { audio = line }
    let length = max(Int64(unit.duration), 1)
    if line.shift == nil {
      let nominal = nominalTime(unit)
      if line.last == nil {
        line.shift = max(nominal, 0) &- unit.decodeTime
        audioLead = MediaTime(ticks: max(nominal, 0), timescale: unit.timescale)
      } else {
        // The last pass may reach into this one by half a frame. If it reaches further, this frame is dropped.
        let distance = nominal &- line.end
        if distance < -length / 2 { return nil }
        line.shift = line.end &+ (distance &+ length / 2) / length &* length &- unit.decodeTime
      }
    }
    var time = unit.decodeTime &+ (line.shift ?? 0)
    // Times that the file rounded to milliseconds join exactly.
    if line.last != nil, (time &- line.end).magnitude <= UInt64(unit.timescale / 500) { time = line.end }
    if let last = line.last, time <= last { return nil }
    line.last = time
    line.end = time &+ length
    return sample(unit, at: time)
  }

  /// The unit's place by its time alone.
  private func nominalTime(_ unit: MediaFile.Unit) -> Int64 {
    unit.decodeTime &- ticks(origin ?? .zero, unit) &+ ticks(start, unit)
  }

  private func ticks(_ time: MediaTime, _ unit: MediaFile.Unit) -> Int64 { time.rescaled(to: unit.timescale) }

  private func sample(_ unit: MediaFile.Unit, at time: Int64) -> Sample {
    Sample(
      track: unit.track, decodeTime: time, compositionOffset: unit.compositionOffset,
      duration: unit.duration > 0 ? unit.duration : nil, isSync: unit.isSync, isDisposable: unit.isDisposable,
      payload: unit.payload)
  }
}
