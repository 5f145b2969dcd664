internal import FMP4
internal import Ingest
internal import NIOCore

/// Those who get a stream's samples before they are cut into fragments, and what they must know of them. Viewers by WebRTC take
/// Opus alone, and no video with B-frames: of other media Opus and H.264 are made while there are such viewers. They get the
/// rungs of the stream's ladder, too.
struct SampleFollowers: Sendable {
  /// Where the Opus comes from.
  private enum Opus {
    case none
    /// From a rung of the stream's settings.
    case ofRung
    /// From a worker for these followers.
    case made(LadderTranscoder)
  }

  /// Who makes a video of the publication's own.
  enum VideoMaker {
    /// The ladder of the stream's settings.
    case ladder
    /// A worker for these followers.
    case followers

    /// The tracks' numbers end before that of Opus.
    func id(_ rung: Int) -> TrackID {
      TrackID(.max - 2 - UInt32(clamping: self == .ladder ? rung : TranscodeLimits.rungs + rung))
    }
  }

  private var followers: [any SampleFollower] = []
  /// Those that are about to follow, and need what is there.
  private var coming = 0
  /// The publication's tracks of each kind.
  private var source: [TrackDescription] = []
  /// The video among them. Asked for each sample, and cheaper than a look at `source`.
  private var video: TrackID?
  private var opus = Opus.none
  /// Makes a video for these followers.
  private var videoMaker: LadderTranscoder?
  /// Videos that are made of the publication's own, the largest first.
  private var rungs: [TrackDescription] = []
  /// Those who wait for one.
  private var waiting: [UInt64: EventLoopPromise<Void>] = [:]
  private var waits: UInt64 = 0
  private var lastShown = Int64.min
  /// Frames of the first video are shown in another order than they are decoded (B-frames).
  private(set) var isReordered = false

  /// Opus that is made, whatever it is made of.
  private static let made: TrackDescription? = (try? FMP4.Opus.Configuration(channels: 2, preSkip: 312)).map {
    TrackDescription(id: TrackID(.max - 1), codec: Codec($0), timescale: FMP4.Opus.timescale)
  }

  /// What followers get: the first track of each kind, with Opus that is made in place of other audio; then the rungs.
  var tracks: [TrackDescription] {
    let own: [TrackDescription]
    if let audio = otherAudio, isMaking, let made = Self.made {
      own = source.map { $0.id == audio.id ? made : $0 }
    } else {
      own = source
    }
    return own + rungs
  }

  /// Audio that viewers by WebRTC do not take.
  var otherAudio: TrackDescription? { source.first(.audio).flatMap { $0.codec.id == .opus ? nil : $0 } }

  /// Of which a video can be made.
  var ownVideo: TrackDescription? { source.first(.video) }

  var isMaking: Bool { if case .none = opus { false } else { true } }
  var isMakingVideo: Bool { videoMaker != nil }
  var hasRungs: Bool { !rungs.isEmpty }

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

  /// Nobody needs what is made any more, if nobody follows.
  private mutating func endIfUnused() {
    guard followers.isEmpty, coming == 0 else { return }
    endMaking()
  }

  private mutating func endMaking() {
    if case .made(let transcoder) = opus { transcoder.finish() }
    opus = .none
    videoMaker?.finish()
    guard videoMaker.take() != nil else { return }
    rungs.removeAll { $0.id == VideoMaker.followers.id(0) }
  }

  /// Takes Opus of this transcoder from now on; of a rung for nil.
  mutating func take(_ transcoder: LadderTranscoder?) {
    opus = transcoder.map { .made($0) } ?? .ofRung
    transcoder?.use(otherAudio)
    pass(.tracks(tracks))
  }

  /// Takes a video of this transcoder from now on.
  mutating func take(video transcoder: LadderTranscoder) {
    videoMaker = transcoder
    transcoder.use(ownVideo)
  }

  // MARK: Waiting

  /// Completed when a rung is there, or by `giveUp`.
  mutating func wait(on eventLoop: any EventLoop) -> (number: UInt64, future: EventLoopFuture<Void>) {
    waits += 1
    let promise = eventLoop.makePromise(of: Void.self)
    waiting[waits] = promise
    return (waits, promise.futureResult)
  }

  mutating func giveUp(_ number: UInt64) {
    if let promise = waiting.removeValue(forKey: number) { Self.complete([promise]) }
  }

  /// Later, on their loops: what follows may call the stream, whose lock is held here.
  private static func complete(_ promises: [EventLoopPromise<Void>]) {
    for promise in promises { promise.futureResult.eventLoop.execute { promise.succeed() } }
  }

  private mutating func completeAll() {
    Self.complete(Array(waiting.values))
    waiting = [:]
  }

  // MARK: Events

  /// Takes an event on the epoch's timeline.
  mutating func receive(_ event: MediaEvent) {
    switch event {
    case .tracks(let tracks):
      let former = (audio: otherAudio, video: ownVideo)
      source = tracks.defaults
      video = source.first(.video)?.id
      (lastShown, isReordered) = (.min, false)
      if case .made(let transcoder) = opus, former.audio != otherAudio { transcoder.use(otherAudio) }
      if former.video != ownVideo { videoMaker?.use(ownVideo) }
      // The ladder makes no rung that is larger than its source, and says of none that it ends.
      let size = ownVideo.map(Self.size)
      rungs.removeAll { rung in size.map { $0 > 0 && Self.size(rung) > $0 } ?? true }
      return pass(.tracks(self.tracks))
    case .sample(let sample):
      if sample.track == video {
        let shown = sample.presentationTime
        isReordered = isReordered || shown < lastShown
        lastShown = shown
        if let videoMaker { _ = videoMaker.feed(sample) }
      } else if case .made(let transcoder) = opus {
        _ = transcoder.feed(sample)
      }
    case .discontinuity:
      lastShown = .min
      if case .made(let transcoder) = opus { transcoder.drain() }
      videoMaker?.drain()
    case .end, .clock, .progress: break
    }
    pass(event)
    guard case .end = event else { return }
    followers = []
    endMaking()
    (source, video, rungs) = ([], nil, [])
    completeAll()
  }

  /// Takes what a transcoder has made of the audio.
  mutating func receive(_ events: [TranscodeEvent]) {
    guard isMaking, otherAudio != nil, let made = Self.made else { return }
    for case .frame(_, var sample) in events {
      sample.track = made.id
      pass(.sample(sample))
    }
  }

  /// Takes what a transcoder has made of the video.
  mutating func receive(_ events: [TranscodeEvent], of maker: VideoMaker) {
    for event in events {
      switch event {
      case .track(let rung, var track):
        track.id = maker.id(rung)
        add(rung: track, of: maker)
      case .frame(let rung, var sample):
        guard !followers.isEmpty else { continue }
        sample.track = maker.id(rung)
        pass(.sample(sample))
      case .lost, .ended: break
      }
    }
  }

  private mutating func add(rung track: TrackDescription, of maker: VideoMaker) {
    // One that nobody wants any more, or of a publication that has no video now.
    guard ownVideo != nil, maker == .ladder || isMakingVideo else { return }
    rungs.removeAll { $0.id == track.id }
    let size = Self.size(track)
    rungs.insert(track, at: rungs.firstIndex { Self.size($0) < size } ?? rungs.endIndex)
    pass(.tracks(tracks))
    completeAll()
  }

  private static func size(_ track: TrackDescription) -> Int {
    track.codec.displaySize.map { $0.width * $0.height } ?? 0
  }

  private func pass(_ event: MediaEvent) { for follower in followers { follower.receive(event) } }
}
