import FMP4
import Publishing
import Logging
import NIOCore
import Synchronization

/// A gate that admits publishers with the key and keeps every event.
final class RecordingGate: PublishGate {
  final class Sink: MediaSink {
    private let events = Mutex<[MediaEvent]>([])
    private let verdict = Mutex(SinkVerdict.accepted)
    let request: PublishRequest

    init(request: PublishRequest) {
      self.request = request
    }

    func receive(_ event: MediaEvent) -> SinkVerdict {
      events.withLock { $0.append(event) }
      return verdict.withLock { $0 }
    }

    private let noted = Mutex<[PublicationWarning]>([])

    func warn(_ warning: PublicationWarning) {
      noted.withLock { $0.append(warning) }
    }

    func withdraw(_ warning: PublicationWarning) {
      noted.withLock { $0.removeAll { $0 == warning } }
    }

    var warnings: [PublicationWarning] { noted.withLock { $0 } }

    private let carried = Mutex<[InBandEvent]>([])

    func carries(_ event: InBandEvent) { carried.withLock { $0.append(event) } }

    /// The kinds of the frames that came early.
    var early: [MediaKind] {
      carried.withLock { $0.compactMap { if case .early(let kind) = $0 { kind } else { nil } } }
    }

    private let passing = Mutex(false)

    var passesSamplesOn: Bool { passing.withLock { $0 } }

    func passSamplesOn() { passing.withLock { $0 = true } }

    private let measured = Mutex(0)

    func measured(_ figures: LinkFigures) { measured.withLock { $0 += 1 } }

    var measurements: Int { measured.withLock { $0 } }

    private let told = Mutex<[Int]>([])

    func holds(_ bytes: Int) { told.withLock { $0.append(bytes) } }

    /// What it was told of bytes that are held.
    var held: [Int] { told.withLock { $0 } }

    func close(_ reason: EndReason) {
      verdict.withLock { $0 = .closed(reason) }
    }

    var recorded: [MediaEvent] { events.withLock { $0 } }
    var ending: EndReason? {
      if case .end(let reason)? = recorded.last { return reason }
      return nil
    }
    var samples: [Sample] {
      recorded.compactMap {
        if case .sample(let sample) = $0 { return sample }
        return nil
      }
    }
    var tracks: [[TrackDescription]] {
      recorded.compactMap {
        if case .tracks(let tracks) = $0 { return tracks }
        return nil
      }
    }
    var discontinuities: Int {
      recorded.count {
        if case .discontinuity = $0 { return true }
        return false
      }
    }
  }

  let key: Secret?
  private let refusal: PublishRefusal?
  private let admitted = Mutex<[Sink]>([])

  init(key: String? = nil, refusal: PublishRefusal? = nil) {
    self.key = key.map { Secret($0) }
    self.refusal = refusal
  }

  var sinks: [Sink] { admitted.withLock { $0 } }

  func admit(_ request: PublishRequest) async throws(PublishRefusal) -> any MediaSink {
    if let refusal { throw refusal }
    if let key {
      guard let given = request.key, key.matches(given) else { throw .unauthorized }
    }
    let sink = Sink(request: request)
    admitted.withLock { $0.append(sink) }
    return sink
  }
}

/// Keeps log lines.
final class LogCollector: LogHandler {
  private let collected = Mutex<[String]>([])

  var lines: [String] { collected.withLock { $0 } }
  var logger: Logger {
    var logger = Logger(label: "test") { _ in self }
    logger.logLevel = .trace
    return logger
  }

  func log(event: LogEvent) {
    // The stream stands before the message, as in the server's log.
    let stream = event.metadata?["stream"].map { "\($0): " } ?? ""
    collected.withLock { $0.append("\(event.level): \(stream)\(event.message)") }
  }

  subscript(metadataKey _: String) -> Logger.Metadata.Value? {
    get { nil }
    set {}
  }

  var metadata: Logger.Metadata {
    get { [:] }
    set {}
  }

  var logLevel: Logger.Level {
    get { .trace }
    set {}
  }
}
