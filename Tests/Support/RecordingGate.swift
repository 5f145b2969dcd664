package import FMP4
package import Logging
package import Publishing
internal import Synchronization

/// A gate that admits publishers with the key and keeps every event.
package final class RecordingGate: PublishGate {
  package final class Sink: MediaSink {
    private let events = Mutex<[MediaEvent]>([])
    private let verdict = Mutex(SinkVerdict.accepted)
    package let request: PublishRequest

    package init(request: PublishRequest) {
      self.request = request
    }

    package func receive(_ event: MediaEvent) -> SinkVerdict {
      events.withLock { $0.append(event) }
      return verdict.withLock { $0 }
    }

    private let noted = Mutex<[PublicationWarning]>([])

    package func warn(_ warning: PublicationWarning) {
      noted.withLock { $0.append(warning) }
    }

    package func withdraw(_ warning: PublicationWarning) {
      noted.withLock { $0.removeAll { $0 == warning } }
    }

    package var warnings: [PublicationWarning] { noted.withLock { $0 } }

    private let carried = Mutex<[InBandEvent]>([])

    package func carries(_ event: InBandEvent) { carried.withLock { $0.append(event) } }

    /// The kinds of the frames that came early.
    package var early: [MediaKind] {
      carried.withLock { $0.compactMap { if case .early(let kind) = $0 { kind } else { nil } } }
    }

    private let passing = Mutex(false)

    package var passesSamplesOn: Bool { passing.withLock { $0 } }

    package func passSamplesOn() { passing.withLock { $0 = true } }

    private let measured = Mutex(0)

    package func measured(_ figures: LinkFigures) { measured.withLock { $0 += 1 } }

    package var measurements: Int { measured.withLock { $0 } }

    private let told = Mutex<[Int]>([])

    package func holds(_ bytes: Int) { told.withLock { $0.append(bytes) } }

    /// What it was told of bytes that are held.
    package var held: [Int] { told.withLock { $0 } }

    package func close(_ reason: EndReason) {
      verdict.withLock { $0 = .closed(reason) }
    }

    package var recorded: [MediaEvent] { events.withLock { $0 } }
    package var ending: EndReason? {
      if case .end(let reason)? = recorded.last { return reason }
      return nil
    }
    package var samples: [Sample] {
      recorded.compactMap {
        if case .sample(let sample) = $0 { return sample }
        return nil
      }
    }
    package var tracks: [[TrackDescription]] {
      recorded.compactMap {
        if case .tracks(let tracks) = $0 { return tracks }
        return nil
      }
    }
    package var discontinuities: Int {
      recorded.count {
        if case .discontinuity = $0 { return true }
        return false
      }
    }
  }

  package let key: Secret?
  private let refusal: PublishRefusal?
  private let admitted = Mutex<[Sink]>([])

  package init(key: String? = nil, refusal: PublishRefusal? = nil) {
    self.key = key.map { Secret($0) }
    self.refusal = refusal
  }

  package var sinks: [Sink] { admitted.withLock { $0 } }

  package func admit(_ request: PublishRequest) async throws(PublishRefusal) -> any MediaSink {
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
package final class LogCollector: LogHandler {
  package init() {}

  private let collected = Mutex<[String]>([])

  package var lines: [String] { collected.withLock { $0 } }
  package var logger: Logger {
    var logger = Logger(label: "test") { _ in self }
    logger.logLevel = .trace
    return logger
  }

  package func log(event: LogEvent) {
    // The stream stands before the message, as in the server's log.
    let stream = event.metadata?["stream"].map { "\($0): " } ?? ""
    collected.withLock { $0.append("\(event.level): \(stream)\(event.message)") }
  }

  package subscript(metadataKey _: String) -> Logger.Metadata.Value? {
    get { nil }
    set {}
  }

  package var metadata: Logger.Metadata {
    get { [:] }
    set {}
  }

  package var logLevel: Logger.Level {
    get { .trace }
    set {}
  }
}
