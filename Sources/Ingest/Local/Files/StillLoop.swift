internal import Base
internal import FMP4

/// Repeats a still picture for ever: which samples are due, and when. Video frame n is at n frame durations, and audio
/// frame k at k times its samples, so nothing drifts. Samples are in the order of their decode times.
struct StillLoop {
  /// What to do now.
  enum Step {
    /// Nothing for this many nanoseconds.
    case wait(nanoseconds: Int64)
    /// Give these: a video frame, and the audio that begins while it is shown.
    case samples([Sample])
    /// The process was suspended for long: give these after a break of the timeline. They begin with a key frame.
    case samplesAfterBreak([Sample])
  }

  private let picture: StillPicture
  private let start: MonotonicTime
  /// The next frames, counted from `start`.
  private var video: Int64 = 0
  private var audio: Int64 = 0
  /// The video frame that the passes are counted from.
  private var first: Int64 = 0

  /// `start` is the time of the first samples.
  init(_ picture: StillPicture, start: MonotonicTime) {
    self.picture = picture
    self.start = start
  }

  /// What was missed in a short delay follows at once. A longer one is a break (`FramePacer.longestDelay`).
  mutating func step(now: MonotonicTime) -> Step {
    let delay = now &- start &- time(ofVideo: video).nanoseconds
    if delay < 0 { return .wait(nanoseconds: -delay) }
    guard delay > FramePacer.longestDelay else { return .samples(take()) }
    let elapsed = MediaTime(nanoseconds: now &- start).rescaled(to: StillPicture.timescale)
    video = max(video, elapsed / Int64(StillPicture.frameDuration))
    first = video
    // The audio frame that is in progress then is left out.
    let length = Int64(silence)
    let begin = time(ofVideo: video).rescaled(to: StillPicture.sampleRate)
    audio = max(audio, (begin &+ length - 1) / length)
    return .samplesAfterBreak(take())
  }

  private mutating func take() -> [Sample] {
    var frame = picture.video[Int((video - first) % Int64(picture.video.count))]
    frame.decodeTime = time(ofVideo: video).ticks
    video += 1
    let end = time(ofVideo: video)
    var samples = [frame]
    while time(ofAudio: audio) < end {
      var frame = picture.silence
      frame.decodeTime = time(ofAudio: audio).ticks
      samples.append(frame)
      audio += 1
    }
    return samples
  }

  /// Samples of an audio frame.
  private var silence: UInt32 { max(picture.silence.duration ?? 0, 1) }

  private func time(ofVideo number: Int64) -> MediaTime {
    MediaTime(ticks: number &* Int64(StillPicture.frameDuration), timescale: StillPicture.timescale)
  }

  private func time(ofAudio number: Int64) -> MediaTime {
    MediaTime(ticks: number &* Int64(silence), timescale: StillPicture.sampleRate)
  }
}
