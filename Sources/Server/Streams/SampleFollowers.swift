internal import FMP4
internal import Ingest

/// Those who get a stream's samples before they are cut into fragments, and what they must know of them. Viewers by WebRTC take
/// Opus alone: of other audio it is made while there are such viewers.
struct SampleFollowers: Sendable {
  /// Where the Opus comes from.
  private enum Opus {
    case none
    /// From a rung of the stream's settings.
    case ofRung
    /// From a worker for these followers.
    case made(LadderTranscoder)
  }

  private var followers: [any SampleFollower] = []
  /// Those that are about to follow, and need what is there.
  private var coming = 0
  /// The publication's tracks of each kind.
  private var source: [TrackDescription] = []
  /// The video among them. Asked for each sample, and cheaper than a look at `source`.
  private var video: TrackID?
  private var opus = Opus.none
  private var lastShown = Int64.min
  /// Frames of the first video are shown in another order than they are decoded (B-frames).
  private(set) var isReordered = false

  /// Opus that is made, whatever it is made of.
  private static let made: TrackDescription? = (try? FMP4.Opus.Configuration(channels: 2, preSkip: 312)).map {
    TrackDescription(id: TrackID(.max - 1), codec: Codec($0), timescale: FMP4.Opus.timescale)
  }

  /// What followers get: the first track of each kind, with Opus that is made in place of other audio.
  var tracks: [TrackDescription] {
    guard let audio = otherAudio, isMaking, let made = Self.made else { return source }
    return source.map { $0.id == audio.id ? made : $0 }
  }

  /// Audio that viewers by WebRTC do not take.
  var otherAudio: TrackDescription? { source.first(.audio).flatMap { $0.codec.id == .opus ? nil : $0 } }

  var isMaking: Bool { if case .none = opus { false } else { true } }

  // MARK: Followers

  mutating func add(_ follower: any SampleFollower) {
    followers.append(follower)
    if !source.isEmpty { follower.receive(.tracks(tracks)) }
  }

  mutating func remove(_ follower: any SampleFollower) {
    followers.removeAll { $0 === follower }
    endIfUnused()
  }

  mutating func hold() { coming += 1 }

  mutating func letGo() {
    coming -= 1
    endIfUnused()
  }

  /// Nobody needs Opus any more, if nobody follows.
  private mutating func endIfUnused() {
    guard followers.isEmpty, coming == 0 else { return }
    if case .made(let transcoder) = opus { transcoder.finish() }
    opus = .none
  }

  /// Takes Opus of this transcoder from now on; of a rung for nil.
  mutating func take(_ transcoder: LadderTranscoder?) {
    opus = transcoder.map { .made($0) } ?? .ofRung
    transcoder?.use(otherAudio)
    pass(.tracks(tracks))
  }

  // MARK: Events

  /// Takes an event on the epoch's timeline.
  mutating func receive(_ event: MediaEvent) {
    switch event {
    case .tracks(let tracks):
      let former = otherAudio
      source = tracks.defaults
      video = source.first(.video)?.id
      (lastShown, isReordered) = (.min, false)
      if case .made(let transcoder) = opus, former != otherAudio { transcoder.use(otherAudio) }
      return pass(.tracks(self.tracks))
    case .sample(let sample):
      if sample.track == video {
        let shown = sample.presentationTime
        isReordered = isReordered || shown < lastShown
        lastShown = shown
      } else if case .made(let transcoder) = opus {
        _ = transcoder.feed(sample)
      }
    case .discontinuity:
      lastShown = .min
      if case .made(let transcoder) = opus { transcoder.drain() }
    case .end, .clock, .progress: break
    }
    pass(event)
    guard case .end = event else { return }
    followers = []
    (source, video) = ([], nil)
    if case .made(let transcoder) = opus { transcoder.finish() }
    opus = .none
  }

  /// Takes what a transcoder has made of the audio.
  func receive(_ events: [TranscodeEvent]) {
    guard isMaking, otherAudio != nil, let made = Self.made else { return }
    for case .frame(_, var sample) in events {
      sample.track = made.id
      pass(.sample(sample))
    }
  }

  private func pass(_ event: MediaEvent) { for follower in followers { follower.receive(event) } }
}
