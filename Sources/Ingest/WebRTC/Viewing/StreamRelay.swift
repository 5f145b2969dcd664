internal import FMP4
internal import NIOCore

/// Who gets the packets of a relay. Called on its event loop.
protocol RelayViewer: AnyObject {
  /// Sends what waits, within its rate. Returns the path, to be flushed; nil if nothing was sent.
  func serve(_ now: MonotonicTime) -> WebRTCPath?
  /// More is there for it than it was given.
  var isBehind: Bool { get }
  func tick(_ now: MonotonicTime)
  /// The codecs of the stream may have changed; nil for a kind that it has no longer.
  func check(_ codec: (MediaKind) -> CodecID?)
  /// Its video cannot be sent any more.
  func endVideo(_ reason: String)
  func end(because reason: String)
}

/// The packets of one stream, made once for all of its viewers. Used on the listener's event loop.
final class StreamRelay {
  /// A track that is sent.
  private struct Track {
    var description: TrackDescription
    var packetizer: any RTPPacketizer
    var log = PacketLog()
    /// Presentation time of the newest sample, in its ticks.
    var lastShown: Int64?
  }

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
  private var tracks: [MediaKind: Track] = [:]
  private var viewers: [ObjectIdentifier: any RelayViewer] = [:]
  private var rtp = RelayClock()
  private var rate = MediaRate()
  private var askedAt = MonotonicTime.min
  /// Until then the publisher is taken for one that cannot be asked.
  private var impossibleUntil = MonotonicTime.min
  private var timer: RepeatedTask?
  /// Viewers are served again soon, as they had no room.
  private var isServingSoon = false

  private static let kinds = [MediaKind.video, .audio]
  private static let tick = TimeAmount.milliseconds(100)
  /// How soon a viewer that was given all that it may take is given more.
  private static let pulse = TimeAmount.milliseconds(4)

  init(
    _ stream: any WatchedStream, on loop: any EventLoop, clock: SteadyClock, room: @escaping () -> Int,
    whenUnused: @escaping (StreamRelay) -> Void
  ) {
    (self.stream, self.room, self.whenUnused, self.loop, self.clock) = (stream, room, whenUnused, loop, clock)
    let first = UInt32.random(in: 1 ... .max - 1)
    sources = [.video: first, .audio: first &+ 1]
  }

  /// Bytes per second of media, as they come.
  var bytesPerSecond: Int64 { rate.bytesPerSecond }

  func log(_ kind: MediaKind) -> PacketLog? { tracks[kind]?.log }

  // MARK: viewers

  var isUnused: Bool { viewers.isEmpty }

  /// False if the stream has ended.
  func add(_ viewer: any RelayViewer) -> Bool {
    if inbox == nil, !begin() { return false }
    viewers[ObjectIdentifier(viewer)] = viewer
    // The codecs may have changed since it was answered. Not at once: it has not begun yet.
    let bound = NIOLoopBound((relay: self, viewer: viewer), eventLoop: loop)
    loop.execute { bound.value.relay.check(bound.value.viewer) }
    return true
  }

  private func check(_ viewer: any RelayViewer) {
    if !tracks.isEmpty { viewer.check { tracks[$0]?.description.codec.id } }
  }

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
    tracks = [:]
  }

  /// Ends all viewers.
  func end(_ reason: String) { for viewer in viewers.values { viewer.end(because: reason) } }

  private func tickAll() {
    let now = clock.monotonic()
    rate.tick(now)
    for viewer in viewers.values { viewer.tick(now) }
    serve(now)
  }

  // MARK: samples

  private func drain() {
    guard let (events, hasLost) = inbox?.take() else { return }
    let now = clock.monotonic()
    for event in events { receive(event, now) }
    if hasLost { for kind in Self.kinds { tracks[kind]?.log.clear() } }
    let limit = room()
    // Not over `tracks` itself: its packets would be copied.
    for kind in Self.kinds { tracks[kind]?.log.trim(to: kind == .video ? limit : limit / 8, now: now) }
    serve(now)
  }

  private func receive(_ event: MediaEvent, _ now: MonotonicTime) {
    switch event {
    case .tracks(let tracks): use(tracks, now)
    case .sample(let sample):
      for kind in Self.kinds where tracks[kind]?.description.id == sample.track {
        add(sample, kind, now)
      }
    case .discontinuity:
      rtp.breaks()
      for kind in Self.kinds { tracks[kind]?.lastShown = nil }
    case .end(let reason): end("the stream has ended (\(reason.text))")
    case .clock, .progress: break
    }
  }

  private func use(_ given: [TrackDescription], _ now: MonotonicTime) {
    rtp.breaks()
    for kind in Self.kinds {
      guard let track = given.first(kind), let packetizer = RTPCodec.packetizer(track.codec) else {
        tracks[kind] = nil
        continue
      }
      if tracks[kind]?.description.codec.id == track.codec.id {
        tracks[kind]?.description = track
        tracks[kind]?.packetizer = packetizer
      } else {
        tracks[kind] = Track(description: track, packetizer: packetizer)
      }
      tracks[kind]?.lastShown = nil
    }
    for viewer in viewers.values { viewer.check { tracks[$0]?.description.codec.id } }
  }

  private func add(_ sample: Sample, _ kind: MediaKind, _ now: MonotonicTime) {
    guard var track = tracks[kind] else { return }
    let shown = sample.presentationTime
    if kind == .video, let last = track.lastShown, shown < last {
      // Viewers would show it behind what follows it.
      tracks[kind]?.lastShown = nil
      for viewer in viewers.values { viewer.endVideo("the video has B-frames now, which cannot be sent by WebRTC") }
      return
    }
    track.lastShown = shown
    let time = MediaTime(ticks: shown, timescale: track.description.timescale)
    let timestamp = rtp.timestamp(of: time, kind, now: now)
    var pieces: [RTPPiece] = []
    track.packetizer.pieces(of: sample.payload, isSync: sample.isSync, to: &pieces)
    rate.add(sample.payload.readableBytes)
    // One owner at a time: the log is not copied.
    tracks[kind] = nil
    track.log.append(pieces, at: timestamp, isSync: sample.isSync && kind == .video, now: now)
    tracks[kind] = track
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

  /// The media clock at a time of the server's.
  func timestamp(_ now: MonotonicTime, _ kind: MediaKind) -> UInt32 {
    (origins[kind] ?? 0)
      &+ UInt32(truncatingIfNeeded: MediaTime(nanoseconds: now.nanoseconds).rescaled(to: Self.hertz(kind)))
  }
}

/// How many bytes of media come in a second.
struct MediaRate {
  private(set) var bytesPerSecond: Int64 = 0
  private var bytes: Int64 = 0
  private var since: MonotonicTime?

  mutating func add(_ count: Int) { bytes &+= Int64(clamping: count) }

  mutating func tick(_ now: MonotonicTime) {
    guard let begun = since else {
      (since, bytes) = (now, 0)
      return
    }
    let passed = now &- begun
    guard passed >= 1_000_000_000 else { return }
    let measured = bytes / max(1, passed / 1_000_000) * 1000
    bytesPerSecond = bytesPerSecond == 0 ? measured : (3 * bytesPerSecond + measured) / 4
    (since, bytes) = (now, 0)
  }
}
