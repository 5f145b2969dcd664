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
  private var soundFrame: [Float]

  /// Ticks of the video track from the encoder's first decode time to 0: the delay of the B-frames. Nil until the
  /// first picture has come out.
  private var origin: Int64?
  private var nextKeyFrame: Int64 = 0
  private var isRefreshWanted = false
  /// The first sample of sound that is not encoded yet, counted from picture 0.
  private var nextSound: Int64 = 0
  /// Sound before this one belongs to a time that was left out.
  private var firstSound: Int64 = 0
  /// Where the last picture ends, in samples of sound.
  private var lastEnd: Int64 = 0
  /// Sound that waits for pictures of its time: as much as the encoder holds pictures back.
  private var waitingSound: [(time: Int64, payload: ByteBuffer)] = []

  /// - Parameter wallStart: nanoseconds since 1970 of picture 0.
  init(settings: TestSourceSettings, wallStart: Int64) throws {
    self.settings = settings
    schedule = TestSchedule(wallStart: wallStart, rate: settings.frameRate)
    canvas = try TestCanvas(settings: settings, schedule: schedule)
    video = try VideoEncoder(.x264, settings.format, settings.encoding)
    audio = try AudioEncoder(.aac, sampleRate: settings.sampleRate, bitRate: settings.audioBitRate)
    soundFrame = [Float](repeating: 0, count: audio.samplesPerFrame)
    tone = TestTone(schedule: schedule, sampleRate: settings.sampleRate)
  }

  /// Makes one picture and the sound up to its end. Numbers only grow; each one that is left out is a picture that
  /// was dropped, and the sound goes on without a gap.
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
    try encodeSound(until: lastEnd)
    if let origin { emitSound(before: origin + ticks(picture + 1), emit) }
  }

  /// The next picture is a key frame, too; the others stay where they are.
  func refresh() { isRefreshWanted = true }

  /// Leaves out everything before a picture, sound as well: the timeline breaks. The picture is a key frame.
  func breakTimeline(before picture: Int64, _ emit: (MediaEvent) -> Void) {
    waitingSound.removeAll()
    let frame = Int64(audio.samplesPerFrame)
    let start = schedule.firstSample(of: picture, sampleRate: settings.sampleRate)
    nextSound = max(nextSound, (start + frame - 1) / frame * frame)
    firstSound = nextSound
    nextKeyFrame = picture
    if origin != nil { emit(.discontinuity) }
  }

  /// Gives out what the encoder still holds.
  func finish(_ emit: (MediaEvent) -> Void) throws {
    try video.finish { self.emit($0, emit) }
    try encodeSound(until: lastEnd + Int64(audio.samplesPerFrame) - 1)
    try audio.finish(keepSound)
    emitSound(before: .max, emit)
  }

  private func encodeSound(until end: Int64) throws {
    while nextSound + Int64(audio.samplesPerFrame) <= end {
      let start = nextSound
      nextSound += Int64(audio.samplesPerFrame)
      soundFrame.withUnsafeMutableBufferPointer { tone.fill($0, from: start) }
      try audio.encode(left: soundFrame, right: soundFrame, at: start) { keepSound($0, $1) }
    }
  }

  private func keepSound(_ time: Int64, _ payload: ByteBuffer) {
    if time >= firstSound { waitingSound.append((time, payload)) }
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

  /// Gives out the waiting sound that begins before a time, in ticks of the video track.
  private func emitSound(before end: Int64, _ emit: (MediaEvent) -> Void) {
    let shift = MediaTime(ticks: origin ?? 0, timescale: settings.frameRate.timescale)
      .rescaled(to: UInt32(settings.sampleRate))
    let end = MediaTime(ticks: end, timescale: settings.frameRate.timescale)
    var count = 0
    for (time, payload) in waitingSound {
      let time = MediaTime(ticks: time + shift, timescale: UInt32(settings.sampleRate))
      guard time < end else { break }
      count += 1
      emit(
        .sample(
          Sample(
            track: .audio, decodeTime: time.ticks, duration: UInt32(audio.samplesPerFrame), isSync: true,
            payload: payload)))
    }
    waitingSound.removeFirst(count)
  }

  private func ticks(_ pictures: Int64) -> Int64 { pictures * Int64(settings.frameRate.frameDuration) }
}
