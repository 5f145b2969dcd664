internal import Base
internal import FMP4
internal import Glibc
internal import Logging
internal import Settings

/// Writes log lines to stderr: `12:03:04 notice rtmp studio: connected`, or JSON objects. Times are UTC.
///
/// The logger's label is the component. The metadata `stream` names the stream and stands before the message. All other metadata
/// follows the message as `key=value`, sorted.
struct ConsoleLogHandler: LogHandler {
  var logLevel: Logger.Level {
    get { own ?? threshold.level }
    set { own = newValue }
  }
  private let threshold: LogThreshold
  /// The level of one logger, instead of that of all.
  private var own: Logger.Level?
  var metadata: Logger.Metadata = [:]
  var metadataProvider: Logger.MetadataProvider?
  private let component: String
  private let format: LogFormat
  private let output: LogOutput
  private let rate: LogRate

  /// For the times of the lines.
  private let now: @Sendable () -> WallTime

  init(
    label: String, threshold: LogThreshold, format: LogFormat, output: LogOutput, rate: LogRate = LogRate(),
    now: @escaping @Sendable () -> WallTime = { ClockReading.now().wall }
  ) {
    component = label
    self.threshold = threshold
    self.format = format
    self.output = output
    self.rate = rate
    self.now = now
  }

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    var all = metadata
    if let provided = metadataProvider?.get() { all.merge(provided) { _, new in new } }
    if let own = event.metadata { all.merge(own) { _, new in new } }
    if let error = event.error { all["error"] = "\(error)" }
    let time = now()
    guard let leftOut = rate.leftOut(before: event, all, now: time) else { return }
    for silence in rate.overdue(now: time) {
      let note = "\(silence.count) lines were left out that begin like \"\(silence.text)\""
      output.write(line(.notice, note, [:])) { line(.warning, $0, [:]) }
    }
    let note = leftOut > 0 ? " (\(leftOut) similar lines were left out before)" : ""
    output.write(line(event.level, event.message.description + note, all)) { line(.warning, $0, [:]) }
  }

  private func line(_ level: Logger.Level, _ message: String, _ metadata: Logger.Metadata) -> String {
    let time = UTCText(now())
    let stream = metadata["stream"].map(\.description)
    let others = metadata.filter { $0.key != "stream" }.sorted { $0.key < $1.key }
    switch format {
    case .text:
      let subject = stream.map { "\(component) \(LogText.escaped($0))" } ?? component
      let tail = others.map { " \(LogText.escaped($0.key))=\(LogText.escaped($0.value.description))" }.joined()
      return "\(time.clock) \(level) \(subject): \(LogText.escaped(message))\(tail)\n"
    case .json:
      var fields = [("time", time.internet), ("level", level.rawValue), ("component", component)]
      if let stream { fields.append(("stream", stream)) }
      fields.append(("message", message))
      fields += others.map { ($0.key, $0.value.description) }
      return "{" + fields.map { "\(LogText.json($0)):\(LogText.json($1))" }.joined(separator: ",") + "}\n"
    }
  }
}
