internal import Base
internal import NIOCore

/// The figures of `/metrics`, and their output in the text format of Prometheus (version 0.0.4).
struct MetricSheet: Sendable {
  /// The server or the stream that a figure describes.
  enum Subject: Sendable, Hashable {
    case server
    case stream(String)
    /// A stream without a series of its own: such streams are combined. No stream can have that name.
    case other

    var label: (name: String, value: String)? {
      switch self {
      case .server: nil
      case .stream(let name): ("stream", name)
      case .other: ("stream", "_other")
      }
    }
  }

  private struct Series: Sendable {
    /// The text after the name: the suffix of a summary, and the labels in braces.
    var place: String
    var value: Double
  }

  private struct Family: Sendable {
    var series: [Series] = []
    /// Index of each series that several streams share.
    var shared: [String: Int] = [:]
  }

  private var families = [Family](repeating: Family(), count: Metric.allCases.count)

  /// Number of series.
  var count: Int { families.reduce(0) { $0 + $1.series.count } }

  mutating func add(
    _ metric: Metric, _ value: Double, of subject: Subject = .server, _ labels: [(name: String, value: String)] = []
  ) {
    add(metric, value, of: subject, labels, suffix: "")
  }

  mutating func add(
    _ metric: Metric, _ value: some BinaryInteger, of subject: Subject = .server,
    _ labels: [(name: String, value: String)] = []
  ) {
    add(metric, Double(value), of: subject, labels, suffix: "")
  }

  mutating func add(_ metric: Metric, _ value: Bool, of subject: Subject = .server) {
    add(metric, value ? 1 : 0, of: subject, [], suffix: "")
  }

  /// Adds a summary.
  mutating func add(
    _ metric: Metric, _ durations: Durations, of subject: Subject = .server,
    _ labels: [(name: String, value: String)] = []
  ) {
    add(metric, durations.seconds, of: subject, labels, suffix: "_sum")
    add(metric, Double(durations.count), of: subject, labels, suffix: "_count")
  }

  private mutating func add(
    _ metric: Metric, _ value: Double, of subject: Subject, _ labels: [(name: String, value: String)], suffix: String
  ) {
    guard let index = Self.places[metric] else { return }
    var labels = labels
    if let label = subject.label { labels.insert(label, at: 0) }
    let place = suffix + Self.braces(labels)
    if case .other = subject {
      if metric.merging == .none { return }
      if let known = families[index].shared[place] {
        let before = families[index].series[known].value
        families[index].series[known].value = metric.merging == .sum ? before + value : max(before, value)
        return
      }
      families[index].shared[place] = families[index].series.count
    }
    families[index].series.append(Series(place: place, value: value))
  }

  private static let places = Dictionary(uniqueKeysWithValues: Metric.allCases.enumerated().map { ($1, $0) })

  // MARK: Text

  /// The text; families without series are left out.
  func text() -> ByteBuffer {
    var buffer = ByteBuffer()
    buffer.reserveCapacity(count * 72 + families.count * 160)
    for (metric, family) in zip(Metric.allCases, families) where !family.series.isEmpty {
      let name = metric.rawValue
      buffer.writeString(
        "# HELP \(name) \(Self.escaped(metric.help, quotes: false))\n# TYPE \(name) \(metric.kind.rawValue)\n")
      for series in family.series {
        buffer.writeString(name)
        buffer.writeString(series.place)
        buffer.writeString(" \(Self.number(series.value))\n")
      }
    }
    return buffer
  }

  private static func braces(_ labels: [(name: String, value: String)]) -> String {
    guard !labels.isEmpty else { return "" }
    return "{" + labels.map { "\($0.name)=\"\(escaped($0.value, quotes: true))\"" }.joined(separator: ",") + "}"
  }

  /// Escapes backslashes and line feeds, and quotes in label values (text format 0.0.4, "Comments, help text, and type
  /// information").
  static func escaped(_ text: String, quotes: Bool) -> String {
    let isPlain = text.utf8.allSatisfy {
      $0 != UInt8(ascii: "\\") && $0 != UInt8(ascii: "\n") && !(quotes && $0 == UInt8(ascii: "\""))
    }
    guard !isPlain else { return text }
    var result = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\\": result += "\\\\"
      case "\n": result += "\\n"
      case "\"" where quotes: result += "\\\""
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }

  /// In the form of Go's ParseFloat; whole numbers without a point.
  static func number(_ value: Double) -> String {
    if value.isNaN { return "NaN" }
    if value.isInfinite { return value < 0 ? "-Inf" : "+Inf" }
    if let whole = Int64(exactly: value), whole.magnitude < 1 << 53 { return String(whole) }
    return "\(value)"
  }
}
