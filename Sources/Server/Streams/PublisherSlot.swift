internal import Base
internal import Control
internal import FMP4
internal import NIOCore
internal import Publishing

/// Identifies one publication of a stream.
struct PublicationToken: Hashable, Sendable {
  fileprivate let number: Int
}

/// The publisher of a stream, the takeover rules, and counters since the stream was created.
struct PublisherSlot: Sendable {
  /// The current publisher.
  struct Holder: Sendable {
    let token: PublicationToken
    let id = SessionID(.publisher)
    let software: String
    let since: MonotonicTime
    /// Of its coded media.
    fileprivate(set) var bytes = 0
    /// Bytes of its unfinished messages.
    fileprivate(set) var unfinishedBytes = 0
    let remoteAddress: String
    /// As `PublishRequest.host`.
    let host: String?
    let evict: @Sendable (EndReason) -> Void
    let askForKeyFrame: (@Sendable () -> Void)?
    let keyFrames: PublishRequest.KeyFrames
    /// The key that it depends on; nil if it needed none.
    let key: Secret?
    /// The name of the key, if it has one.
    let keyName: String?
    fileprivate(set) var lastReceived: MonotonicTime
    /// When the last sample came of the track by which fragments are cut: video, where there is some.
    fileprivate(set) var lastLeading: MonotonicTime
    /// The newest figures of its connection; nil where its protocol has none.
    fileprivate(set) var link: LinkFigures?
  }

  /// The last publisher that was disconnected on request, and why: what it still sends is answered with the reason.
  private var dismissed: (token: PublicationToken, reason: EndReason)?

  typealias Change = (token: PublicationToken, former: Holder?)

  private(set) var holder: Holder?
  /// The protocol of the last publisher.
  private(set) var lastProtocol = ""
  /// As `PublishRequest.host`, of the last publisher.
  private(set) var lastHost: String?
  /// Address and port of the last publisher; nil for a source of this server.
  private(set) var lastAddress: String?
  /// The same when the last publisher had no key.
  private(set) var anonymousHost: String?
  /// The key of the last publisher; nil if it needed none.
  private(set) var lastKey: Secret?
  /// What is known of the key frames of the last publisher.
  private(set) var keyFrames = PublishRequest.KeyFrames.asItsEncoderHasThem
  /// Whether the last publisher's connection was made. True before there was one.
  private(set) var hasConnected = true
  private(set) var requestedRecording = PublishRequest.RecordingMode.asConfigured
  /// What the transport stream of the last publisher has; nil where it has none.
  private(set) var content: TransportContent?
  /// The newest figures of the last publisher's connection; nil where its protocol has none.
  private(set) var lastLink: LinkFigures?
  private var lastTakeover: MonotonicTime?
  private var publications = 0
  private var bounds: PublicationBounds
  var counters = StreamCounters()
  /// The ends of the audio and the video.
  private var ends = AVSkew()
  /// The video by which fragments are cut, and whether the timeline broke: what comes before its next key frame is left out.
  private var leader: (video: TrackID?, awaitsKeyFrame: Bool) = (nil, false)

  init(_ limits: PublicationBounds.Limits) {
    bounds = PublicationBounds(limits)
  }

  /// Replaces the limits. What was counted is kept unless they differ.
  mutating func limit(by limits: PublicationBounds.Limits) {
    if bounds.limits != limits { bounds = PublicationBounds(limits) }
  }

  // MARK: Coming and going

  /// Gives the name to a publisher. With the name's own key the newest publisher wins, at most once in five seconds, unless
  /// `takeover` says otherwise. Without
  /// it, a holder that still sends keeps the name, except against its own address with a key for all names. Returns the former
  /// holder.
  mutating func admit(
    _ request: PublishRequest, _ proof: Authorizer.Proof, takeover: PublisherRule.Takeover = .newest,
    now: MonotonicTime
  ) throws(PublishRefusal) -> Change {
    let right = proof.right
    let former = holder
    if let former, let refusal = refusal(of: request, right: right, takeover, holder: former, now: now) {
      throw refusal
    }
    guard bounds.begin(now: now) else {
      throw .tooManyBreaks(stream: request.stream, retryAfterSeconds: bounds.secondsUntilBreak)
    }
    if former != nil { lastTakeover = now }
    publications += 1
    counters.begin(request.protocolName)
    requestedRecording = request.recording
    (content, lastLink) = (nil, nil)
    lastProtocol = request.protocolName
    keyFrames = request.keyFrames
    lastHost = request.host
    hasConnected = request.connection == .made
    lastAddress = request.origin == .server ? nil : request.remoteAddress
    anonymousHost = right == .anonymous ? request.host : nil
    lastKey = proof.key
    let token = PublicationToken(number: publications)
    leader = (nil, false)
    holder = Holder(
      token: token, software: request.software, since: now, remoteAddress: request.remoteAddress, host: request.host,
      evict: request.onEviction,
      askForKeyFrame: request.onKeyFrameWanted, keyFrames: request.keyFrames, key: proof.key, keyName: proof.name,
      lastReceived: now, lastLeading: now)
    return (token, former)
  }

  /// Why a new publisher does not get the name; nil when it does.
  private func refusal(
    of request: PublishRequest, right: PublishRight, _ takeover: PublisherRule.Takeover, holder: Holder,
    now: MonotonicTime
  ) -> PublishRefusal? {
    let isSilent = now &- holder.lastReceived >= StreamSettings.holderGrace.nanoseconds
    let isNeighbour = request.host != nil && request.host == holder.host
    switch right {
    case .anonymous: return isSilent ? nil : .busy(stream: request.stream, holder: holder.remoteAddress)
    case .keyOfName where takeover == .first && !isSilent, .keyForAllNames where takeover == .first && !isSilent:
      return .busy(stream: request.stream, holder: holder.remoteAddress)
    case .keyForAllNames where !isSilent && !isNeighbour:
      return .busy(stream: request.stream, holder: holder.remoteAddress)
    case .keyForAllNames, .keyOfName:
      let interval = StreamSettings.takeoverInterval.nanoseconds
      guard let lastTakeover, now &- lastTakeover < interval else { return nil }
      let seconds = Int((interval &- (now &- lastTakeover)) / 1_000_000_000) + 1
      return .tooManyTakeovers(stream: request.stream, retryAfterSeconds: seconds)
    }
  }

  /// The publisher's connection is made.
  mutating func connect() { hasConnected = true }

  /// Frees the name. Returns the former holder.
  @discardableResult mutating func release() -> Holder? { holder.take() }

  /// Frees the name on request. Returns the former holder, which the caller evicts.
  mutating func dismiss(_ reason: EndReason) -> Holder? {
    dismissed = holder.map { ($0.token, reason) }
    return release()
  }

  /// Why a publisher that no longer holds the name was disconnected; nil if not on request.
  func dismissal(of token: PublicationToken) -> EndReason? { dismissed?.token == token ? dismissed?.reason : nil }

  // MARK: Intake

  /// Counts an event of a publication.
  mutating func count(_ event: MediaEvent, now: MonotonicTime) {
    if case .progress = event { return }  // of the clock, not of the publisher
    holder?.lastReceived = now
    switch event {
    case .sample(let sample):
      counters.intake.bytes &+= sample.payload.readableBytes
      holder?.bytes &+= sample.payload.readableBytes
      let kind = ends.take(sample)
      if leader.video == nil || sample.track == leader.video { holder?.lastLeading = now }
      if sample.track == leader.video, leader.awaitsKeyFrame {
        leader.awaitsKeyFrame = !sample.isSync
        if !sample.isSync { return countLost(.video) }
      }
      switch kind {
      case .video?:
        counters.intake.frames &+= 1
        if sample.isSync { counters.intake.keyFrames &+= 1 }
      case .audio?: counters.intake.audioFrames &+= 1
      case nil: break
      }
    case .discontinuity:
      counters.intake.jumps &+= 1
      leader.awaitsKeyFrame = true
    case .tracks(let tracks):
      ends.use(tracks)
      leader.video = tracks.first(.video)?.id
    case .clock, .progress, .end: break
    }
  }

  /// Keeps the figures of the publisher's connection.
  mutating func measured(_ figures: LinkFigures) {
    counters.link.add(figures, since: holder?.link ?? LinkFigures())
    holder?.link = figures
    lastLink = figures
  }

  /// Keeps how many bytes of unfinished messages its protocol holds.
  mutating func holds(unfinished bytes: Int) { holder?.unfinishedBytes = bytes }

  /// Keeps the newest account of its transport stream.
  mutating func carries(_ content: TransportContent) { self.content = content }

  /// Counts a sample that arrived and could not be used.
  mutating func countLost(_ kind: MediaKind) {
    switch kind {
    case .video: counters.intake.lostFrames &+= 1
    case .audio: counters.intake.lostAudioFrames &+= 1
    }
  }

  /// Counts a sample that came before the stream could begin.
  mutating func countEarly(_ kind: MediaKind) {
    switch kind {
    case .video: counters.intake.earlyFrames &+= 1
    case .audio: counters.intake.earlyAudioFrames &+= 1
    }
  }

  /// Counts a sample that was counted as taken as one that came early: viewers do not get it.
  mutating func countEarly(taken kind: MediaKind) {
    switch kind {
    case .video: counters.intake.frames &-= 1
    case .audio: counters.intake.audioFrames &-= 1
    }
    countEarly(kind)
  }

  /// Counts a sample whose timestamp was wrong and is mended.
  mutating func countMended(_ kind: MediaKind) {
    switch kind {
    case .video: counters.intake.mendedFrames &+= 1
    case .audio: counters.intake.mendedAudioFrames &+= 1
    }
  }

  /// Why an event, already counted, ends the publication; nil when it continues.
  mutating func violation(about event: MediaEvent, now: MonotonicTime) -> String? {
    bounds.violation(about: event, end: ends.reach, now: now)
  }

  /// Seconds of media per second of real time. Nil before it is known, and when it is unchanged since the last sample.
  var newPace: Double? { bounds.pace.isNewSecond ? bounds.pace.recentShare : nil }

  /// Nanoseconds by which the last sample moved the end of the media on.
  var lastStep: Int64 { bounds.pace.lastStep }

  func bytesPerSecond(now: MonotonicTime) -> Int { bounds.pace.bytesPerSecond(now: now) }

  /// Seconds by which the audio is ahead of the video; nil when one of them is missing.
  var skew: Double? { ends.skew }
}
