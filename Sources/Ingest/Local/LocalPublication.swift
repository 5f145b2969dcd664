internal import FMP4
internal import Logging
internal import Publishing
internal import Synchronization

/// The publication of one of the server's own sources. Asks for admission, passes events to the sink, and records its
/// end. Events come from one thread at a time.
final class LocalPublication: Sendable {
  /// How it ends.
  private enum Ending: Sendable {
    /// The sink gets the reason.
    case told(EndReason)
    /// The sink has closed already and gets no more events.
    case silent(EndReason)
  }

  /// Kind of the source.
  enum Kind: String, Sendable {
    case test, file, capture

    /// Name in log lines.
    var title: String { self == .test ? "test pattern" : rawValue }
    /// The demo is never recorded.
    var recording: PublishRequest.RecordingMode { self == .test ? .never : .asConfigured }
  }

  let name: StreamName
  let logger: Logger
  private let kind: Kind
  private let gate: any PublishGate
  private let keyFrameInterval: MediaTime?
  private let onKeyFrameWanted: (@Sendable () -> Void)?
  private let ending = Mutex<Ending?>(nil)
  private let sink = Mutex<(any MediaSink)?>(nil)

  /// - Parameters:
  ///   - keyFrameInterval: distance of its key frames, if it is certain in advance.
  ///   - onKeyFrameWanted: requests a key frame from its encoder, on any thread. Nil if it has no encoder.
  init(
    name: StreamName, kind: Kind, gate: any PublishGate, logger: Logger, keyFrameInterval: MediaTime? = nil,
    onKeyFrameWanted: (@Sendable () -> Void)? = nil
  ) {
    self.name = name
    self.kind = kind
    self.gate = gate
    self.keyFrameInterval = keyFrameInterval
    self.onKeyFrameWanted = onKeyFrameWanted
    var logger = logger
    logger[metadataKey: "stream"] = "\(name)"
    self.logger = logger
  }

  /// Whether it is ending.
  var isEnding: Bool { ending.withLock { $0 != nil } }

  func stop(_ reason: EndReason) { end(.told(reason)) }

  /// Publishes while `work` runs. An error of `work` fails the publication. Returns why it ended.
  func run(_ work: @escaping @Sendable () async throws -> Void) async -> EndReason {
    do throws(PublishRefusal) {
      let admitted = try await gate.admit(request)
      sink.withLock { $0 = admitted }
    } catch {
      logger.error("the \(kind.title) was refused: \(error.description)")
      end(.silent(.failed(error.description)))
      return .failed(error.description)
    }
    await withTaskCancellationHandler {
      do {
        try await work()
        end(.told(.finished))
      } catch {
        logger.error("the \(kind.title) failed: \(error)")
        end(.told(.failed("\(error)")))
      }
    } onCancel: {
      stop(.shutdown)
    }
    switch ending.withLock({ $0 }) {
    case .told(let reason)?:
      _ = sink.withLock { $0 }?.receive(.end(reason))
      return reason
    case .silent(let reason)?: return reason
    case nil: return .finished
    }
  }

  /// Passes an event to the sink, unless it has closed.
  func give(_ event: MediaEvent) {
    if case .silent = ending.withLock({ $0 }) { return }
    guard let sink = sink.withLock({ $0 }) else { return }
    if case .closed(let reason) = sink.receive(event) {
      logger.notice("the \(kind.title)'s publication was ended: \(reason)")
      ending.withLock { $0 = .silent(reason) }
    }
  }

  /// Counts an unusable video or audio frame.
  func lost(_ kind: MediaKind) { sink.withLock { $0 }?.lost(kind) }

  private var request: PublishRequest {
    PublishRequest(
      stream: name, key: nil, protocolName: kind.rawValue, remoteAddress: "this server",
      software: "weir \(kind.rawValue) source", recording: kind.recording, origin: .server,
      keyFrames: keyFrameInterval.map { .every($0) } ?? .asItsEncoderHasThem, onKeyFrameWanted: onKeyFrameWanted
    ) { [weak self] reason in
      self?.end(.silent(reason))
    }
  }

  /// The first reason counts.
  private func end(_ ending: Ending) {
    self.ending.withLock { if $0 == nil { $0 = ending } }
  }
}
