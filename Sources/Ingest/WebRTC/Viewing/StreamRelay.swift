internal import Base
internal import FMP4
internal import NIOCore
internal import Publishing

/// Who gets the packets of a relay. Called on its event loop.
protocol RelayViewer: AnyObject {
  /// Sends what waits, within its rate. Returns the path, to be flushed; nil if nothing was sent.
  func serve(_ now: MonotonicTime) -> WebRTCPath?
  /// More is there for it than it was given.
  var isBehind: Bool { get }
  /// The tracks that it gets.
  var tracks: [TrackID] { get }
  func tick(_ now: MonotonicTime)
  /// The tracks of the stream may be others, or one of them cannot be sent any more.
  func check(_ now: MonotonicTime)
  func end(because reason: String)
}

/// The packets of one stream, made once for all of its viewers. Used on the listener's event loop.
final class StreamRelay {
  /// What became of a request for a key frame.
  enum KeyFrameAnswer { case asked, tooSoon, impossible }

  let stream: any WatchedStream
  /// The sender (SSRC) of each kind.
  let sources: [MediaKind: UInt32]
  /// Bytes of packets that may be kept.
  private let room: () -> Int
  private let whenUnused: (StreamRelay) -> Void
  private let loop: any EventLoop
  private let clock: SteadyClock
  private var inbox: SampleInbox?
  /// The publication's own video, then those that are made of it, the largest first.
  private(set) var videos: [RelayTrack] = []
  private(set) var audio: RelayTrack?
  /// The publication's own tracks, as they were told; nil before.
  private var own: [TrackDescription]?
  private var viewers: [ObjectIdentifier: any RelayViewer] = [:]
  private var rtp = RelayClock()
  private var askedAt = MonotonicTime.min
  /// Until then the publisher is taken for one that cannot be asked.
  private var impossibleUntil = MonotonicTime.min
  private var timer: RepeatedTask?
  /// Viewers are served again soon, as they had no room.
  private var isServingSoon = false
  /// When the stream was told which tracks its viewers get.
  private var toldAt = MonotonicTime.min

  private static let tick = TimeAmount.milliseconds(100)
  /// How soon a viewer that was given all that it may take is given more.
  private static let pulse = TimeAmount.milliseconds(4)
  private static let tellPause: Int64 = 1_000_000_000

  init(
    _ stream: any WatchedStream, on loop: any EventLoop, clock: SteadyClock, room: @escaping () -> Int,
    whenUnused: @escaping (StreamRelay) -> Void
  ) {
    (self.stream, self.room, self.whenUnused, self.loop, self.clock) = (stream, room, whenUnused, loop, clock)
    let first = UInt32.random(in: 1 ... .max - 1)
    sources = [.video: first, .audio: first &+ 1]
  }

  /// Bytes per second of a video and of the audio, as they come.
  func bytesPerSecond(of video: TrackID?) -> Int64 {
    (self.video(video)?.bytesPerSecond ?? 0) &+ (audio?.bytesPerSecond ?? 0)
  }

  func video(_ id: TrackID?) -> RelayTrack? { videos.first { $0.id == id } }

  private var tracks: [RelayTrack] { videos + (audio.map { [$0] } ?? []) }

  // MARK: viewers

  var isUnused: Bool { viewers.isEmpty }

  /// False if the stream has ended.
  func add(_ viewer: any RelayViewer) -> Bool {
    if inbox == nil, !begin() { return false }
    viewers[ObjectIdentifier(viewer)] = viewer
    // The codecs may have changed since it was answered. Not at once: it has not begun yet.
    let bound = NIOLoopBound((relay: self, viewer: viewer), eventLoop: loop)
    loop.execute { if bound.value.relay.own != nil { bound.value.viewer.check(bound.value.relay.clock.monotonic()) } }
    return true
  }

  private func checkAll(_ now: MonotonicTime) { for viewer in viewers.values { viewer.check(now) } }

  func remove(_ viewer: any RelayViewer) {
    guard viewers.removeValue(forKey: ObjectIdentifier(viewer)) != nil, viewers.isEmpty else { return }
    close()
  }

  private func begin() -> Bool {
    let bound = NIOLoopBound(self, eventLoop: loop)
    let inbox = SampleInbox { [loop] in loop.execute { bound.value.drain() } }
    guard stream.follow(inbox) else { return false }
    self.inbox = inbox
    timer = loop.scheduleRepeatedTask(initialDelay: Self.tick, delay: Self.tick) { _ in bound.value.tickAll() }
    return true
  }

  private func close() {
    whenUnused(self)
    timer?.cancel()
    timer = nil
    guard let inbox = inbox.take() else { return }
    stream.unfollow(inbox)
    inbox.close()
    (videos, audio, own) = ([], nil, nil)
  }

  /// Ends all viewers.
  func end(_ reason: String) { for viewer in viewers.values { viewer.end(because: reason) } }

  private func tickAll() {
    let now = clock.monotonic()
    for track in tracks { track.tick(now) }
    for viewer in viewers.values { viewer.tick(now) }
    tell(now)
    serve(now)
  }

  private func tell(_ now: MonotonicTime) {
    guard inbox != nil, toldAt == .min || now &- toldAt >= Self.tellPause else { return }
    toldAt = now
    stream.use(Set(viewers.values.flatMap(\.tracks)))
  }

  // MARK: samples

  private func drain() {
    guard let (events, hasLost) = inbox?.take() else { return }
    let now = clock.monotonic()
    for event in events { receive(event, now) }
    if hasLost { for track in tracks { track.clear() } }
    trim(now)
    serve(now)
  }

  /// Videos share the room by their rates. One that has just begun has none yet.
  private func trim(_ now: MonotonicTime) {
    let limit = room()
    audio?.trim(to: limit / 8, now: now)
    let all = videos.reduce(Int64(0)) { $0 &+ $1.bytesPerSecond }
    for video in videos {
      let share = all > 0 ? Double(video.bytesPerSecond) / Double(all) : 1 / Double(videos.count)
      video.trim(to: max(limit / 16, Int(Double(limit) * share)), now: now)
    }
  }

  private func receive(_ event: MediaEvent, _ now: MonotonicTime) {
    switch event {
    case .tracks(let tracks): use(tracks, now)
    case .sample(let sample):
      if let track = audio?.id == sample.track ? audio : video(sample.track) { add(sample, track, now) }
    case .discontinuity: breaks()
    case .end(let reason): end("the stream has ended (\(reason.text))")
    case .clock, .progress: break
    }
  }

  private func breaks() {
    rtp.breaks()
    for track in tracks { track.breaks() }
  }

  private func use(_ given: [TrackDescription], _ now: MonotonicTime) {
    let former = (own: own, count: videos.count)
    own = given.defaults
    let all = videos
    videos = given.filter { $0.kind == .video }.map { Self.track($0, among: all, now) }
    audio = given.first(.audio).map { Self.track($0, among: audio.map { [$0] } ?? [], now) }
    // A video that is made of the stream's changes nothing for the others.
    if former.own != own || former.count == videos.count { breaks() }
    checkAll(now)
  }

  /// The known track, if it is the same in the same codec: its packets are kept.
  private static func track(
    _ given: TrackDescription, among known: [RelayTrack], _ now: MonotonicTime
  ) -> RelayTrack {
    guard let same = known.first(where: { $0.id == given.id && $0.coding == given.codec.id }) else {
      return RelayTrack(given, now: now)
    }
    same.use(given)
    return same
  }

  private func add(_ sample: Sample, _ track: RelayTrack, _ now: MonotonicTime) {
    let time = MediaTime(ticks: sample.presentationTime, timescale: track.description.timescale)
    let isOwn = track === audio || track === videos.first
    let timestamp =
      isOwn ? rtp.timestamp(of: time, track.kind, now: now) : rtp.timestamp(ofMade: time, track.kind, now: now)
    let wasSent = track.isSent
    track.add(sample, at: timestamp, now: now)
    if wasSent, !track.isSent { checkAll(now) }
  }

  // MARK: sending

  /// Gives viewers what waits, within the rate of each.
  private func serve(_ now: MonotonicTime) {
    var last: WebRTCPath?
    var isLate = false
    for viewer in viewers.values {
      guard let path = viewer.serve(now) else { continue }
      if let last, last.channel !== path.channel { last.flush() }
      last = path
      isLate = isLate || viewer.isBehind
    }
    last?.flush()
    if isLate { serveSoon() }
  }

  /// A viewer waits for more than it was given.
  func serveSoon() {
    guard !isServingSoon else { return }
    isServingSoon = true
    let bound = NIOLoopBound(self, eventLoop: loop)
    loop.scheduleTask(in: Self.pulse) { bound.value.serveAgain() }
  }

  private func serveAgain() {
    isServingSoon = false
    serve(clock.monotonic())
  }

  /// What time it is on the media clock of a kind.
  func timestamp(_ kind: MediaKind, now: MonotonicTime) -> UInt32 { rtp.timestamp(now, kind) }

  /// Asks the publisher for a key frame, at most twice a second.
  func requestKeyFrame(_ now: MonotonicTime) -> KeyFrameAnswer {
    guard now &- askedAt >= WebRTCLimits.keyFramePause || askedAt == .min else { return .tooSoon }
    guard now >= impossibleUntil else { return .impossible }
    guard stream.askForKeyFrame() else {
      impossibleUntil = now &+ WebRTCLimits.keyFramePause
      return .impossible
    }
    askedAt = now
    return .asked
  }
}

/// The clock of the packets: the server's, to which media times are moved. So audio and video have one.
struct RelayClock {
  /// From media time to the clock, in nanoseconds.
  private var shift: Int64?
  private var isBroken = false
  private let origins: [MediaKind: UInt32] = [
    .video: .random(in: .min ... .max), .audio: .random(in: .min ... .max),
  ]

  /// Media that is later than this after a break had an outage, in nanoseconds.
  private static let tolerance: Int64 = 500_000_000

  private static func hertz(_ kind: MediaKind) -> UInt32 { kind == .video ? 90_000 : 48_000 }

  /// The next media may come after an outage, which the media's own times do not show.
  mutating func breaks() { isBroken = true }

  /// - Parameter time: presentation time.
  mutating func timestamp(of time: MediaTime, _ kind: MediaKind, now: MonotonicTime) -> UInt32 {
    let here = now.nanoseconds &- time.nanoseconds
    let known = shift ?? here
    // Never back.
    let shift = isBroken && here &- known > Self.tolerance ? here : known
    (self.shift, isBroken) = (shift, false)
    let hertz = Self.hertz(kind)
    return (origins[kind] ?? 0) &+ UInt32(truncatingIfNeeded: time.rescaled(to: hertz))
      &+ UInt32(truncatingIfNeeded: MediaTime(nanoseconds: shift).rescaled(to: hertz))
  }

  /// Of media that is made of other media, and comes later: it moves no clock.
  mutating func timestamp(ofMade time: MediaTime, _ kind: MediaKind, now: MonotonicTime) -> UInt32 {
    let wasBroken = isBroken
    isBroken = false
    defer { isBroken = wasBroken }
    return timestamp(of: time, kind, now: now)
  }

  /// The media clock at a time of the server's.
  func timestamp(_ now: MonotonicTime, _ kind: MediaKind) -> UInt32 {
    (origins[kind] ?? 0)
      &+ UInt32(truncatingIfNeeded: MediaTime(nanoseconds: now.nanoseconds).rescaled(to: Self.hertz(kind)))
  }
}
