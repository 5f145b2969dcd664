package import FMP4

/// A publisher that is part of the server: the test pattern, a file, a camera with its microphone.
package protocol MediaSource: Sendable {
  var name: StreamName { get }
  /// Publishes until `stop` is called, the task is cancelled or the server ends the publication. Returns why it ended,
  /// once all is over and its devices are closed; to be called once.
  @discardableResult
  func run() async -> EndReason
  /// Ends the publication soon; `run` returns then.
  func stop(_ reason: EndReason)
  /// What it captures and encodes, in figures; nil where it does neither.
  var status: CaptureStatus? { get }
  /// What is asked of its devices now; nil where it has none.
  var settings: CaptureSettings? { get }
  /// Asks something of it while it is live; the reason where it does not do it.
  func change(_ change: CaptureChange) -> CaptureRefusal?
}

extension MediaSource {
  package var status: CaptureStatus? { nil }
  package var settings: CaptureSettings? { nil }
  package func change(_ change: CaptureChange) -> CaptureRefusal? { .isNoCapture }
}
