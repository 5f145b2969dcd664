internal import FMP4
internal import NIOCore

/// Makes the test source's events, picture by picture: a function of its settings and of the wall time of picture 0,
/// so that equal inputs give equal bytes. It lives on one thread and knows no clock.
final class TestMedia {
  private let settings: TestSourceSettings
  private let schedule: TestSchedule
  private let canvas: TestCanvas
  private let video: VideoEncoder
  private let audio: AudioEncoder
  private let tone: TestTone
  private var audioFrame: [Float]

  /// Ticks of the video track from the encoder's first decode time to 0: the delay of the B-frames. Nil until the
  /// first picture has come out.
  private var origin: Int64?
  private var nextKeyFrame: Int64 = 0
  private var isRefreshWanted = false
  /// The first sample of audio that is not encoded yet, counted from picture 0.
  private var nextAudio: Int64 = 0
  /// Audio before this one belongs to a time that was left out.
  private var firstAudio: Int64 = 0
  /// Where the last picture ends, in samples of audio.
  private var lastEnd: Int64 = 0
  /// Audio that waits for pictures of its time: as much as the encoder holds pictures back.
  private var waitingAudio: [(time: Int64, payload: ByteBuffer)] = []

  /// - Parameter wallStart: nanoseconds since 1970 of picture 0.
  init(settings: TestSourceSettings, wallStart: Int64) throws {
    self.settings = settings
    schedule = TestSchedule(wallStart: wallStart, rate: settings.frameRate)
    canvas = try TestCanvas(settings: settings, schedule: schedule)
    video = try VideoEncoder(.x264, settings.format, settings.encoding)
    audio = try AudioEncoder(.aac, sampleRate: settings.sampleRate, bitRate: settings.audioBitRate)
    audioFrame = [Float](repeating: 0, count: audio.samplesPerFrame)
    tone = TestTone(schedule: schedule, sampleRate: settings.sampleRate)
  }

  /// Makes one picture and the audio up to its end. Numbers only grow; each one that is left out is a picture that
  /// was dropped, and the audio goes on without a gap.
  func advance(to picture: Int64, _ emit: (MediaEvent) -> Void) throws {
    let isKeyFrame = picture >= nextKeyFrame || isRefreshWanted
    isRefreshWanted = false
    if isKeyFrame {
      let interval = Int64(settings.keyFrameInterval)
      nextKeyFrame = (picture / interval + 1) * interval
    }
    try canvas.draw(picture)
    try video.encode(canvas.frame, at: picture, as: isKeyFrame ? .keyFrame : .asEncoderLikes) { coded in
      self.emit(coded, emit)
    }
    lastEnd = schedule.firstSample(of: picture + 1, sampleRate: settings.sampleRate)
    try encodeAudio(until: lastEnd)
    if let origin { emitAudio(before: origin + ticks(picture + 1), emit) }
  }

  /// The next picture is a key frame, too; the others stay where they are.
  func refresh() { isRefreshWanted = true }

  /// Leaves out everything before a picture, audio as well: the timeline breaks. The picture is a key frame.
  func breakTimeline(before picture: Int64, _ emit: (MediaEvent) -> Void) {
    waitingAudio.removeAll()
    let frame = Int64(audio.samplesPerFrame)
    let start = schedule.firstSample(of: picture, sampleRate: settings.sampleRate)
    nextAudio = max(nextAudio, (start + frame - 1) / frame * frame)
    firstAudio = nextAudio
    nextKeyFrame = picture
    if origin != nil { emit(.discontinuity) }
  }

  /// Gives out what the encoder still holds.
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

  private func emit(_ coded: VideoEncoder.CodedPicture, _ emit: (MediaEvent) -> Void) {
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
          mediaTime: MediaTime(ticks: origin, timescale: timescale), wallNanoseconds: schedule.wallStart)))
    emit(
      .tracks([
        TrackDescription(
          id: .video, codec: codec, timescale: timescale,
          frameDuration: settings.frameRate.frameDuration),
        TrackDescription(id: .audio, codec: audio.codec, timescale: UInt32(settings.sampleRate)),
      ]))
  }

  /// Gives out the waiting audio that begins before a time, in ticks of the video track.
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

  private func ticks(_ pictures: Int64) -> Int64 { pictures * Int64(settings.frameRate.frameDuration) }
}
