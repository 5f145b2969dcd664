package import FMP4
package import Publishing

/// A publisher inside the server: the test pattern, a file, a camera with its microphone, or a
/// transport stream that arrives by UDP.
package protocol MediaSource: Sendable {
  var name: StreamName { get }
  /// Publishes until `stop` is called, the task is cancelled or the server ends the publication. Returns the reason
  /// once everything has ended and its devices are closed. Call it once.
  @discardableResult
  func run() async -> EndReason
  /// Ends the publication soon; then `run` returns.
  func stop(_ reason: EndReason)
  /// Status of its capture and encoding. Nil if it has none.
  var status: CaptureStatus? { get }
  /// State of its reception. Nil if it receives nothing from a network.
  var reception: ReceptionStatus? { get }
  /// Present settings of its devices. Nil if it has none.
  var settings: CaptureSettings? { get }
  /// Requests a change while it is live. Returns the reason if it is refused.
  func change(_ change: CaptureChange) -> CaptureRefusal?
}

extension MediaSource {
  package var status: CaptureStatus? { nil }
  package var reception: ReceptionStatus? { nil }
  package var settings: CaptureSettings? { nil }
  package func change(_ change: CaptureChange) -> CaptureRefusal? { .isNoCapture }
}
