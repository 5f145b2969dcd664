internal import Base
internal import FMP4
internal import NIOCore
internal import Publishing
internal import Transcode

/// Those who get a stream's samples before they are cut into fragments, and what they must know of them. Viewers by WebRTC take
/// Opus alone, and no video with B-frames: of other media Opus and H.264 are made while there are such viewers. They get the
/// rungs of the stream's ladder, too.
struct SampleFollowers: Sendable {
  /// A worker for these followers.
  private struct Worker {
    let transcoder: LadderTranscoder
    let number: UInt64
    /// When a follower last said that it uses what this makes.
    var usedAt: MonotonicTime

    func isUnused(_ now: MonotonicTime) -> Bool { now &- usedAt >= SampleFollowers.patience }
  }

  /// Where the Opus comes from.
  private enum Opus {
    case none
    /// From a rung of the stream's settings.
    case ofRung
    case made(Worker)
  }

  /// Who makes a video of the publication's own.
  enum VideoMaker {
    /// The ladder of the stream's settings.
    case ladder
    /// A worker for these followers, by its number.
    case followers(UInt64)

    /// The tracks' numbers end before that of Opus.
    func id(_ rung: Int) -> TrackID {
      switch self {
      case .ladder: TrackID(.max - 2 - UInt32(clamping: rung))
      case .followers: TrackID(.max - 2 - UInt32(clamping: TranscodeLimits.rungs + rung))
      }
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
  private var videoMaker: Worker?
  /// How many workers there were. What an ended one still makes is told from its successor's by its number.
  private var workers: UInt64 = 0
  /// Videos that are made of the publication's own, the largest first.
  private var rungs: [TrackDescription] = []
  /// Those who wait for one.
  private var waiting: [UInt64: EventLoopPromise<Void>] = [:]
  private var waits: UInt64 = 0
  private var lastShown = Int64.min
  /// Frames of the first video are shown in another order than they are decoded (B-frames).
  private(set) var isReordered = false

  /// A worker whose media nobody used for so long is ended, in nanoseconds.
  static let patience: Int64 = 10_000_000_000

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

  var isEmpty: Bool { followers.isEmpty }

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
    endOpus()
    endVideo()
  }

  private mutating func endOpus() {
    if case .made(let worker) = opus { worker.transcoder.finish() }
    opus = .none
  }

  private mutating func endVideo() {
    guard let worker = videoMaker.take() else { return }
    worker.transcoder.finish()
    rungs.removeAll { $0.id == VideoMaker.followers(worker.number).id(0) }
  }

  /// A follower uses these tracks now. What nobody uses any more is not made for long. Who is about to follow may need it.
  mutating func use(_ used: Set<TrackID>, now: MonotonicTime) {
    let before = (isMaking, isMakingVideo)
    if case .made(var worker) = opus {
      if let made = Self.made, used.contains(made.id) { worker.usedAt = now }
      opus = .made(worker)
      if coming == 0, worker.isUnused(now) { endOpus() }
    }
    if let worker = videoMaker {
      if used.contains(VideoMaker.followers(worker.number).id(0)) { videoMaker?.usedAt = now }
      if coming == 0, videoMaker?.isUnused(now) == true { endVideo() }
    }
    if before != (isMaking, isMakingVideo) { pass(.tracks(tracks)) }
  }

  /// The number of a worker that is about to be started. What it makes comes with that.
  mutating func nextWorker() -> UInt64 {
    workers += 1
    return workers
  }

  /// Takes Opus that a rung of the stream's settings has.
  mutating func takeOpusOfRung() {
    opus = .ofRung
    pass(.tracks(tracks))
  }

  /// Takes Opus of this transcoder from now on.
  mutating func take(opus transcoder: LadderTranscoder, _ number: UInt64, now: MonotonicTime) {
    opus = .made(Worker(transcoder: transcoder, number: number, usedAt: now))
    transcoder.use(otherAudio)
    pass(.tracks(tracks))
  }

  /// Takes a video of this transcoder from now on.
  mutating func take(video transcoder: LadderTranscoder, _ number: UInt64, now: MonotonicTime) {
    videoMaker = Worker(transcoder: transcoder, number: number, usedAt: now)
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
      if case .made(let worker) = opus, former.audio != otherAudio { worker.transcoder.use(otherAudio) }
      if former.video != ownVideo { videoMaker?.transcoder.use(ownVideo) }
      // The ladder makes no rung that is larger than its source, and says of none that it ends.
      let size = ownVideo.map(Self.size)
      rungs.removeAll { rung in size.map { $0 > 0 && Self.size(rung) > $0 } ?? true }
      return pass(.tracks(self.tracks))
    case .sample(let sample):
      if sample.track == video {
        let shown = sample.presentationTime
        isReordered = isReordered || shown < lastShown
        lastShown = shown
        if let videoMaker { _ = videoMaker.transcoder.feed(sample) }
      } else if case .made(let worker) = opus {
        _ = worker.transcoder.feed(sample)
      }
    case .discontinuity:
      lastShown = .min
      if case .made(let worker) = opus { worker.transcoder.drain() }
      videoMaker?.transcoder.drain()
    case .end, .clock, .progress: break
    }
    pass(event)
    guard case .end = event else { return }
    followers = []
    endMaking()
    (source, video, rungs) = ([], nil, [])
    completeAll()
  }

  /// Takes what a transcoder has made of the audio: the worker of this number, or a rung of the settings.
  mutating func receive(_ events: [TranscodeEvent], ofOpus number: UInt64?) {
    let isWanted =
      switch opus {
      case .none: false
      case .ofRung: number == nil
      case .made(let worker): number == worker.number
      }
    guard isWanted, otherAudio != nil, let made = Self.made else { return }
    for case .frame(_, var sample) in events {
      sample.track = made.id
      pass(.sample(sample))
    }
  }

  /// Takes what a transcoder has made of the video.
  mutating func receive(_ events: [TranscodeEvent], of maker: VideoMaker) {
    // An ended worker still makes what it was given before.
    if case .followers(let number) = maker, number != videoMaker?.number { return }
    for event in events {
      switch event {
      case .track(let rung, var track):
        track.id = maker.id(rung)
        add(rung: track)
      case .frame(let rung, var sample):
        guard !followers.isEmpty else { continue }
        sample.track = maker.id(rung)
        pass(.sample(sample))
      case .lost, .ended: break
      }
    }
  }

  private mutating func add(rung track: TrackDescription) {
    // A publication may have no video now.
    guard ownVideo != nil else { return }
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
