internal import FMP4
internal import LibAV
internal import NIOCore

/// Makes the test source's events, frame by frame. They depend only on its settings and the wall clock time of frame 0,
/// so equal inputs give equal bytes. Has no clock. Used on one thread.
final class TestMedia {
  private let settings: TestSourceSettings
  private let schedule: TestSchedule
  private let canvas: TestCanvas
  private let video: VideoEncoder
  private let audio: AudioEncoder
  private let tone: TestTone
  private var audioFrame: [Float]

  /// Ticks of the video track from the encoder's first decode time to 0: the delay of the B-frames. Nil until the first
  /// frame was output.
  private var origin: Int64?
  /// The first frame of the timeline. Key frames are at whole intervals from it.
  private var firstKeyFrame: Int64 = 0
  private var nextKeyFrame: Int64 = 0
  private var isRefreshWanted = false
  /// First audio sample that is not encoded yet, counted from frame 0.
  private var nextAudio: Int64 = 0
  /// Audio before this sample belongs to a dropped period.
  private var firstAudio: Int64 = 0
  /// End of the last frame, in audio samples.
  private var lastEnd: Int64 = 0
  /// Audio that waits for video of its time, as long as the encoder holds frames.
  private var waitingAudio: [(time: Int64, payload: ByteBuffer)] = []

  /// - Parameter wallStart: time of frame 0.
  init(settings: TestSourceSettings, wallStart: WallTime) throws {
    self.settings = settings
    schedule = TestSchedule(wallStart: wallStart, rate: settings.frameRate)
    canvas = try TestCanvas(settings: settings, schedule: schedule)
    video = try VideoEncoder(.x264, settings.format, settings.encoding)
    audio = try AudioEncoder(.aac, sampleRate: settings.sampleRate, bitRate: settings.audioBitRate)
    audioFrame = [Float](repeating: 0, count: audio.samplesPerFrame)
    tone = TestTone(schedule: schedule, sampleRate: settings.sampleRate)
  }

  /// Makes one frame and the audio up to its end. Numbers only grow. Each skipped number is a dropped frame; the audio
  /// continues without a gap.
  func advance(to number: Int64, _ emit: (MediaEvent) -> Void) throws {
    let isKeyFrame = number >= nextKeyFrame || isRefreshWanted
    isRefreshWanted = false
    if isKeyFrame {
      let interval = Int64(settings.keyFrameInterval)
      nextKeyFrame = firstKeyFrame + ((number - firstKeyFrame) / interval + 1) * interval
    }
    try canvas.draw(number)
    let turned = try canvas.turned(by: settings.rotation)
    try video.encode(turned?.frame ?? canvas.frame, at: number, as: isKeyFrame ? .keyFrame : .asEncoderLikes) { coded in
      self.emit(coded, emit)
    }
    lastEnd = schedule.firstSample(of: number + 1, sampleRate: settings.sampleRate)
    try encodeAudio(until: lastEnd)
    if let origin { emitAudio(before: origin + ticks(number + 1), emit) }
  }

  /// Makes the next frame a key frame. The other key frames stay in place.
  func refresh() { isRefreshWanted = true }

  /// Drops everything before a frame, with its audio: the timeline breaks. The frame is a key frame, and the others come at
  /// whole intervals from it: a segment would not be as long as a shorter first interval.
  func breakTimeline(before number: Int64, _ emit: (MediaEvent) -> Void) {
    waitingAudio.removeAll()
    let frame = Int64(audio.samplesPerFrame)
    let start = schedule.firstSample(of: number, sampleRate: settings.sampleRate)
    nextAudio = max(nextAudio, (start + frame - 1) / frame * frame)
    firstAudio = nextAudio
    (firstKeyFrame, nextKeyFrame) = (number, number)
    if origin != nil { emit(.discontinuity) }
  }

  /// Outputs everything still in the encoder.
  func finish(_ emit: (MediaEvent) -> Void) throws {
    try video.finish { self.emit($0, emit) }
    try encodeAudio(until: lastEnd + Int64(audio.samplesPerFrame) - 1)
    try audio.finish(keepAudio)
    emitAudio(before: .max, emit)
  }

  private func encodeAudio(until end: Int64) throws {
    while nextAudio + Int64(audio.samplesPerFrame) <= end {
      let start = nextAudio
      nextAudio += Int64(audio.samplesPerFrame)
      audioFrame.withUnsafeMutableBufferPointer { tone.fill($0, from: start) }
      try audio.encode(left: audioFrame, right: audioFrame, at: start) { keepAudio($0, $1) }
    }
  }

  private func keepAudio(_ time: Int64, _ payload: ByteBuffer) {
    if time >= firstAudio { waitingAudio.append((time, payload)) }
  }

  private func emit(_ coded: VideoEncoder.CodedFrame, _ emit: (MediaEvent) -> Void) {
    if origin == nil, let codec = video.codec { begin(codec, firstDecodeTime: coded.decodeTime, emit) }
    let decodeTime = ticks(coded.decodeTime) + (origin ?? 0)
    let offset = ticks(coded.presentationTime - coded.decodeTime)
    emit(
      .sample(
        Sample(
          track: .video, decodeTime: decodeTime, compositionOffset: Int32(truncatingIfNeeded: offset),
          duration: settings.frameRate.frameDuration, isSync: coded.isSync, payload: coded.payload)))
  }

  private func begin(_ codec: Codec, firstDecodeTime: Int64, _ emit: (MediaEvent) -> Void) {
    let origin = -ticks(firstDecodeTime)
    self.origin = origin
    let timescale = settings.frameRate.timescale
    emit(
      .clock(
        WallClockAnchor(
          mediaTime: MediaTime(ticks: origin, timescale: timescale), wallTime: schedule.wallStart)))
    emit(
      .tracks([
        TrackDescription(
          id: .video, codec: codec, timescale: timescale,
          frameDuration: settings.frameRate.frameDuration),
        TrackDescription(id: .audio, codec: audio.codec, timescale: UInt32(settings.sampleRate)),
      ]))
  }

  /// Outputs the waiting audio that begins before a time, in ticks of the video track.
  private func emitAudio(before end: Int64, _ emit: (MediaEvent) -> Void) {
    let shift = MediaTime(ticks: origin ?? 0, timescale: settings.frameRate.timescale)
      .rescaled(to: UInt32(settings.sampleRate))
    let end = MediaTime(ticks: end, timescale: settings.frameRate.timescale)
    var count = 0
    for (time, payload) in waitingAudio {
      let time = MediaTime(ticks: time + shift, timescale: UInt32(settings.sampleRate))
      guard time < end else { break }
      count += 1
      emit(
        .sample(
          Sample(
            track: .audio, decodeTime: time.ticks, duration: UInt32(audio.samplesPerFrame), isSync: true,
            payload: payload)))
    }
    waitingAudio.removeFirst(count)
  }

  private func ticks(_ frames: Int64) -> Int64 { frames * Int64(settings.frameRate.frameDuration) }
}
