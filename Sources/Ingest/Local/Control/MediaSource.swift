package import FMP4

/// A publisher inside the server: the test pattern, a file, or a camera with its microphone.
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
  /// Present settings of its devices. Nil if it has none.
  var settings: CaptureSettings? { get }
  /// Requests a change while it is live. Returns the reason if it is refused.
  func change(_ change: CaptureChange) -> CaptureRefusal?
}

extension MediaSource {
  package var status: CaptureStatus? { nil }
  package var settings: CaptureSettings? { nil }
  package func change(_ change: CaptureChange) -> CaptureRefusal? { .isNoCapture }
}
