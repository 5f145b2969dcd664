internal import FMP4
internal import Logging
internal import Synchronization

/// The publication of one of the server's own sources: asks for admission, carries events to the sink, and knows when
/// it is to end. Events come from one thread at a time.
final class OwnPublication: Sendable {
  /// How it is to end.
  private enum Ending: Sendable {
    /// The sink hears why.
    case told(EndReason)
    /// The sink has closed already, and hears nothing more.
    case silent(EndReason)
  }

  let name: StreamName
  let logger: Logger
  private let kind: String
  private let gate: any PublishGate
  private let onKeyFrameWanted: (@Sendable () -> Void)?
  private let ending = Mutex<Ending?>(nil)
  private let sink = Mutex<(any MediaSink)?>(nil)

  /// - Parameters:
  ///   - kind: "file" or "camera", as the API and the log call it.
  ///   - onKeyFrameWanted: asks its encoder for a key frame, from any thread; nil where it has none.
  init(
    name: StreamName, kind: String, gate: any PublishGate, logger: Logger,
    onKeyFrameWanted: (@Sendable () -> Void)? = nil
  ) {
    self.name = name
    self.kind = kind
    self.gate = gate
    self.onKeyFrameWanted = onKeyFrameWanted
    var logger = logger
    logger[metadataKey: "stream"] = "\(name)"
    self.logger = logger
  }

  /// True from when it is to end on.
  var isEnding: Bool { ending.withLock { $0 != nil } }

  func stop(_ reason: EndReason) { end(.told(reason)) }

  /// Publishes for as long as the work takes; what the work throws fails the publication.
  func run(_ work: @escaping @Sendable () async throws -> Void) async {
    do throws(PublishRefusal) {
      let admitted = try await gate.admit(request)
      sink.withLock { $0 = admitted }
    } catch {
      logger.error("the \(kind) was refused: \(error.description)")
      end(.silent(.failed(error.description)))
      return
    }
    await withTaskCancellationHandler {
      do {
        try await work()
        end(.told(.finished))
      } catch {
        logger.error("the \(kind) failed: \(error)")
        end(.told(.failed("\(error)")))
      }
    } onCancel: {
      stop(.shutdown)
    }
    if case .told(let reason)? = ending.withLock({ $0 }) { _ = sink.withLock { $0 }?.receive(.end(reason)) }
  }

  /// Gives the sink an event, unless it has closed.
  func give(_ event: MediaEvent) {
    if case .silent = ending.withLock({ $0 }) { return }
    guard let sink = sink.withLock({ $0 }) else { return }
    if case .closed(let reason) = sink.receive(event) {
      logger.notice("the \(kind)'s publication was ended: \(reason)")
      ending.withLock { $0 = .silent(reason) }
    }
  }

  private var request: PublishRequest {
    PublishRequest(
      stream: name, key: nil, protocolName: kind, remoteAddress: "this server", software: "weir \(kind) source",
      origin: .server, onKeyFrameWanted: onKeyFrameWanted
    ) { [weak self] reason in
      self?.end(.silent(reason))
    }
  }

  /// The first word counts.
  private func end(_ ending: Ending) {
    self.ending.withLock { if $0 == nil { $0 = ending } }
  }
}
