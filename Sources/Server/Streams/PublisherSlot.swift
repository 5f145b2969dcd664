internal import FMP4
internal import Ingest
internal import NIOCore

/// Identifies one publication of a stream.
struct PublicationToken: Hashable, Sendable {
  fileprivate let number: Int
}

/// Who publishes a stream, by the rules of takeover, and what has come of it since the name came up.
struct PublisherSlot: Sendable {
  /// The publisher that has the name. All times are monotonic, in nanoseconds.
  struct Holder: Sendable {
    let token: PublicationToken
    let remoteAddress: String
    /// As `PublishRequest.host`.
    let host: String?
    let evict: @Sendable (EndReason) -> Void
    let askForKeyFrame: (@Sendable () -> Void)?
    fileprivate(set) var lastReceived: Int64
  }

  typealias Change = (token: PublicationToken, former: Holder?)

  private(set) var holder: Holder?
  /// Of the last publisher.
  private(set) var lastProtocol = ""
  /// As `PublishRequest.host`, of the last publisher.
  private(set) var lastHost: String?
  /// The same where that showed no key.
  private(set) var unprovenHost: String?
  private(set) var recordingWish = PublishRequest.RecordingWish.asConfigured
  private var lastTakeover: Int64?
  private var publications = 0
  private var bounds: PublicationBounds
  var counters = StreamCounters()
  /// How far what has come reaches.
  private var ends = AVSkew()

  init(_ limits: PublicationBounds.Limits) {
    bounds = PublicationBounds(limits)
  }

  // MARK: Coming and going

  /// Gives the name to a publisher: with the name's own key the newest wins, at most once in five seconds; else a holder that
  /// is still sending keeps the name, but against its own address with a key for all names. Returns the one that held it.
  mutating func admit(
    _ request: PublishRequest, right: PublishRight, now: Int64
  ) throws(PublishRefusal) -> Change {
    let former = holder
    if let former, let refusal = refusal(of: request, right: right, holder: former, now: now) { throw refusal }
    guard bounds.begin(now: now) else {
      throw .tooManyBreaks(stream: request.stream, retryAfterSeconds: bounds.secondsUntilBreak)
    }
    if former != nil { lastTakeover = now }
    publications += 1
    counters.begin(request.protocolName)
    recordingWish = request.recording
    lastProtocol = request.protocolName
    lastHost = request.host
    unprovenHost = right == .unproven ? request.host : nil
    let token = PublicationToken(number: publications)
    holder = Holder(
      token: token, remoteAddress: request.remoteAddress, host: request.host, evict: request.onEviction,
      askForKeyFrame: request.onKeyFrameWanted, lastReceived: now)
    return (token, former)
  }

  /// Why a newcomer does not get the name; nil where it does.
  private func refusal(
    of request: PublishRequest, right: PublishRight, holder: Holder, now: Int64
  ) -> PublishRefusal? {
    let isSilent = now &- holder.lastReceived >= StreamSettings.holderGrace.nanoseconds
    let isNeighbour = request.host != nil && request.host == holder.host
    switch right {
    case .unproven: return isSilent ? nil : .busy(stream: request.stream, holder: holder.remoteAddress)
    case .keyForAllNames where !isSilent && !isNeighbour:
      return .busy(stream: request.stream, holder: holder.remoteAddress)
    case .keyForAllNames, .keyOfName:
      let interval = StreamSettings.takeoverInterval.nanoseconds
      guard let lastTakeover, now &- lastTakeover < interval else { return nil }
      let seconds = Int((interval &- (now &- lastTakeover)) / 1_000_000_000) + 1
      return .tooManyTakeovers(stream: request.stream, retryAfterSeconds: seconds)
    }
  }

  /// Nobody has the name any more. Returns who had it.
  @discardableResult mutating func release() -> Holder? { holder.take() }

  // MARK: What comes

  /// Counts what a publication sends.
  mutating func count(_ event: MediaEvent, now: Int64) {
    if case .progress = event { return }  // of the clock, not of the publisher
    holder?.lastReceived = now
    switch event {
    case .sample(let sample):
      counters.intake.bytes &+= sample.payload.readableBytes
      switch ends.take(sample) {
      case .video?:
        counters.intake.pictures &+= 1
        if sample.isSync { counters.intake.keyFrames &+= 1 }
      case .audio?: counters.intake.audioFrames &+= 1
      case nil: break
      }
    case .discontinuity: counters.intake.jumps &+= 1
    case .tracks(let tracks): ends.use(tracks)
    case .clock, .progress, .end: break
    }
  }

  /// A sample came and could not be used.
  mutating func countLost(_ kind: MediaKind) {
    switch kind {
    case .video: counters.intake.lostPictures &+= 1
    case .audio: counters.intake.lostAudioFrames &+= 1
    }
  }

  /// Why the publication ends with an event that is counted; nil where it goes on.
  mutating func complaint(about event: MediaEvent, now: Int64) -> String? {
    bounds.complaint(about: event, end: ends.reach, now: now)
  }

  /// Seconds of media in a second of real time; nil before it is known, and where nothing is new since the last sample.
  var newPace: Double? { bounds.pace.isNewSecond ? bounds.pace.recentShare : nil }

  func bytesPerSecond(now: Int64) -> Int { bounds.pace.bytesPerSecond(now: now) }

  /// Seconds by which audio is ahead of the picture; nil where one of them is missing.
  var skew: Double? { ends.skew }
}
