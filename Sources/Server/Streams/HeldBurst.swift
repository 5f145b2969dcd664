internal import FMP4
internal import NIOCore

/// The first media of a publication that come faster than real time. They wait until it is known when they were made, so that no
/// list tells of another time before.
struct HeldBurst: Sendable {
  /// Bytes and events that wait at most. With more, what is known by then has to do.
  static let mostBytes = 32 << 20
  static let mostEvents = 8192

  private(set) var events: [MediaEvent] = []
  private(set) var byteCount = 0

  /// Nothing more may wait.
  var isFull: Bool { byteCount >= Self.mostBytes || events.count >= Self.mostEvents }

  mutating func append(_ event: MediaEvent) {
    if case .sample(let sample) = event { byteCount += sample.payload.readableBytes }
    events.append(event)
  }
}
