internal import NIOCore

/// Samples of one track on their way into fragments. The newest one waits until its duration is known: from the codec,
/// from a constant rate, or from the next sample's decode time.
struct SampleQueue {
  /// The track, shared: a queue is copied where one looks at it for each sample, and a description is large.
  private final class Description: Sendable {
    let track: TrackDescription

    init(_ track: TrackDescription) { self.track = track }
  }

  private let description: Description
  var track: TrackDescription { description.track }
  /// Ticks per second of all times.
  var timescale: UInt32 { description.track.timescale }
  /// Samples whose duration is known, oldest first.
  private(set) var ready: [RunSample] = []
  private(set) var payloads: [ByteBuffer] = []
  /// Decode time of the first ready sample, in ticks.
  private(set) var readyStart: Int64 = 0
  /// Decode time at which the ready samples end, in ticks.
  private(set) var readyEnd: Int64 = 0
  private(set) var readyBytes = 0
  /// The newest sample, while its duration is unknown.
  private(set) var waiting: Sample?
  /// Duration of the newest sample whose duration is known.
  private(set) var lastDuration: UInt32?
  /// Where frames without sound end that were put in its place, in ticks. Samples that come for that time have none.
  private(set) var silentUntil: Int64?
  /// Whether fragments wait for the track, if it follows another one.
  var presence = FollowerPresence()
  /// The next sample is the first one after others of another form, which are left out.
  var isReturning = false
  private var isEmptySoFar = true
  /// Presentation minus decode time of the newest sync sample, in ticks.
  private var syncOffset: Int64 = 0
  /// The duration of the last ready sample is predicted from the rate, not taken from the next sample.
  private var endIsPredicted = false

  init(track: TrackDescription) {
    description = Description(track)
  }

  /// Decode time (ticks) and sync flag of the newest sample, while only the next sample can show its duration.
  var newest: (decodeTime: Int64, isSync: Bool)? {
    if let waiting { return (waiting.decodeTime, waiting.isSync) }
    guard endIsPredicted, let last = ready.last else { return nil }
    return (readyEnd &- Int64(last.duration), last.isSync)
  }

  /// Decode time up to which all samples are known, in ticks; nil before the first.
  var reach: Int64? { isEmptySoFar ? nil : readyEnd }

  /// Decode time (ticks) at which the track is cut so that its presentation is cut at `time`. A frame of a video that is
  /// shown at the boundary belongs behind it, however the times were rounded.
  func boundary(at time: MediaTime) -> Int64 {
    let boundary = time.rescaled(to: timescale)
    guard description.track.kind == .video else { return boundary }
    return boundary &- syncOffset &- Int64(lastDuration ?? description.track.frameDuration ?? 0) / 2
  }

  /// Bytes of all samples.
  var byteCount: Int { readyBytes + (waiting?.payload.readableBytes ?? 0) }

  /// Whether the queue holds no sample.
  var isEmpty: Bool { ready.isEmpty && waiting == nil }

  /// Earliest decode time that the next sample may have.
  private var floor: Int64 {
    if let waiting { return waiting.decodeTime &+ 1 }
    return isEmptySoFar ? .min : readyEnd
  }

  /// Appends the next sample and returns its decode time. If the time does not rise, it is raised just above the last
  /// one. If it is later than the predicted end of a closed fragment, it is moved to that end. So decode times have no
  /// gap. The composition offset absorbs the difference: the presentation time stays as it was.
  mutating func append(_ incoming: Sample) -> Int64 {
    var sample = incoming
    if sample.decodeTime < floor || (ready.isEmpty && endIsPredicted) {
      let lift = floor &- sample.decodeTime
      sample.compositionOffset = Int32(clamping: Int64(sample.compositionOffset) &- lift)
      sample.decodeTime = floor
    }
    if sample.isSync { syncOffset = max(0, Int64(sample.compositionOffset)) }
    resolveWaiting(until: sample.decodeTime)
    if let duration = sample.duration, duration > 0 {
      admit(sample, duration: duration)
      endIsPredicted = description.track.kind == .video
    } else {
      waiting = sample
      endIsPredicted = false
    }
    return sample.decodeTime
  }

  /// Appends frames without sound, as many whole ones as there is room for from a time (ticks) up to `end` (presentation time).
  /// They begin where the samples end, if that is later. Does nothing for video, and where no such frame is known.
  mutating func addSilence(from start: Int64, until end: MediaTime) {
    let codec = description.track.codec
    guard waiting == nil, let reach, let silence = codec.silence, let length = codec.duration(of: silence), length > 0
    else { return }
    var time = max(reach, start)
    let last = end.rescaled(to: timescale) &- Int64(length)
    while time <= last, ready.count < CutPolicy.fragmentSampleLimit {
      _ = append(
        Sample(track: description.track.id, decodeTime: time, duration: length, isSync: true, payload: silence))
      time &+= Int64(length)
      silentUntil = time
    }
  }

  /// Lets a track that is back be silent up to its first sample (ticks), unless that comes after a pause.
  mutating func fillReturn(until decodeTime: Int64, pause: MediaTime) {
    guard isReturning else { return }
    isReturning = false
    guard let reach, decodeTime &- reach <= pause.rescaled(to: timescale) else { return }
    addSilence(from: reach, until: MediaTime(ticks: decodeTime, timescale: timescale))
  }

  /// Gives the waiting sample a duration up to `decodeTime`.
  mutating func resolveWaiting(until decodeTime: Int64) {
    guard let sample = waiting else { return extend(to: decodeTime) }
    waiting = nil
    admit(sample, duration: UInt32(clamping: max(1, decodeTime &- sample.decodeTime)))
  }

  /// Ends the track for the time of a pause: the sample after it keeps its own decode time, and the one before it its
  /// usual duration.
  mutating func endBeforePause(until decodeTime: Int64, longerThan limit: MediaTime) {
    guard let end = waiting?.decodeTime ?? reach, decodeTime &- end > limit.rescaled(to: timescale) else {
      return
    }
    resolveWaitingWithoutSuccessor()
    endIsPredicted = false
  }

  /// Gives the waiting sample the most likely duration, because no other sample will come.
  ///
  /// - Parameter next: decode time (ticks) at which it ends at the latest; nil if there is none.
  mutating func resolveWaitingWithoutSuccessor(before next: Int64? = nil) {
    guard let sample = waiting else { return }
    let fallback = UInt32(clamping: max(1, timescale / 30))
    let duration = sample.duration ?? lastDuration ?? description.track.frameDuration ?? fallback
    let end = sample.decodeTime &+ Int64(max(1, duration))
    resolveWaiting(until: max(sample.decodeTime &+ 1, min(end, next ?? end)))
  }

  /// Extends the last ready sample until `decodeTime`, if its duration was predicted.
  private mutating func extend(to decodeTime: Int64) {
    guard endIsPredicted, let last = ready.indices.last, decodeTime > readyEnd else { return }
    ready[last].duration = UInt32(clamping: Int64(ready[last].duration) &+ (decodeTime &- readyEnd))
    readyEnd = decodeTime
  }

  private mutating func admit(_ sample: Sample, duration: UInt32) {
    if ready.isEmpty {
      readyStart = sample.decodeTime
    } else if sample.decodeTime > readyEnd, let last = ready.indices.last {
      // A gap within a run lengthens the sample before it: a run has one base decode time and durations only.
      ready[last].duration = UInt32(clamping: Int64(ready[last].duration) &+ (sample.decodeTime &- readyEnd))
    }
    readyEnd = sample.decodeTime &+ Int64(duration)
    isEmptySoFar = false
    lastDuration = duration
    ready.append(
      RunSample(
        size: UInt32(clamping: sample.payload.readableBytes), duration: duration,
        compositionOffset: sample.compositionOffset, isSync: sample.isSync, isDisposable: sample.isDisposable))
    payloads.append(sample.payload)
    readyBytes += sample.payload.readableBytes
  }

  /// Duration (ticks) of the ready samples up to `boundary`, or of all of them.
  func length(before boundary: Int64?) -> Int64 {
    ready.isEmpty ? 0 : min(readyEnd, boundary ?? readyEnd) &- readyStart
  }

  /// Drops the ready samples that end before `decodeTime` (ticks).
  mutating func drop(endingBefore decodeTime: Int64) {
    guard let first = ready.first, readyStart &+ Int64(first.duration) <= decodeTime else { return }
    _ = take(before: decodeTime &- Int64(first.duration) &+ 1)
  }

  /// Removes and returns the ready samples with a decode time before `boundary` (ticks), or all of them. Their total
  /// duration is at most `longest` (ticks), but at least one is taken.
  mutating func take(
    before boundary: Int64? = nil, longest: Int64? = nil
  ) -> (run: TrackRun, payloads: [ByteBuffer])? {
    guard !ready.isEmpty else { return nil }
    var count = ready.count
    var end = readyEnd
    var bytes = readyBytes
    if let boundary, readyEnd > boundary {
      // Only the newest few samples stay: count from the back.
      while count > 0 {
        let start = end &- Int64(ready[count - 1].duration)
        if start < boundary { break }
        end = start
        bytes -= Int(ready[count - 1].size)
        count -= 1
      }
    }
    while let longest, count > 1, end &- readyStart > longest {
      end &-= Int64(ready[count - 1].duration)
      bytes -= Int(ready[count - 1].size)
      count -= 1
    }
    guard count > 0 else { return nil }
    let run = TrackRun(
      track: description.track.id, timescale: timescale, baseDecodeTime: readyStart, samples: Array(ready[..<count]),
      byteCount: bytes, duration: end &- readyStart)
    let taken = Array(payloads[..<count])
    ready.removeFirst(count)
    payloads.removeFirst(count)
    readyStart = end
    readyBytes -= bytes
    return (run, taken)
  }
}
