internal import FMP4
internal import Publishing

/// A publisher's access to a stream.
final class StreamPublication: MediaSink {
  private let stream: LiveStream
  private let token: PublicationToken
  private let account: UnfinishedBudget.Account
  let anonymousHost: String?

  init(stream: LiveStream, token: PublicationToken, _ account: UnfinishedBudget.Account, anonymousHost: String?) {
    self.stream = stream
    self.token = token
    self.account = account
    self.anonymousHost = anonymousHost
  }

  /// Segments are cut at the target duration, whatever length they aim at.
  var keyFrameDistance: MediaTime? { CutPolicy.keyFrameDistance(stream.settings.segmentTarget, stream.targetDuration) }

  var passesSamplesOn: Bool { stream.hasSampleFollowers }

  var mostHeldAtStart: Int { account.mostAtStart }

  func receive(_ event: MediaEvent) -> SinkVerdict {
    switch event {
    case .tracks, .end: account.begin()
    case .sample, .clock, .progress, .discontinuity: break
    }
    return stream.receive(event, from: token)
  }

  func lost(_ kind: MediaKind) {
    stream.lost(kind, from: token)
  }

  func warn(_ warning: PublicationWarning) {
    stream.warn(warning, from: token)
  }

  func withdraw(_ warning: PublicationWarning) {
    stream.withdraw(warning, from: token)
  }

  func carries(_ event: InBandEvent) {
    stream.take(event, from: token)
  }

  func measured(_ figures: LinkFigures) {
    stream.measured(figures, from: token)
  }

  func holds(_ bytes: Int) {
    stream.hold(unfinished: bytes, of: token)
    account.hold(bytes)
  }

  func connected() { stream.connected(token) }
}
