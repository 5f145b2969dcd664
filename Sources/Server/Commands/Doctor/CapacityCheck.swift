internal import API
internal import Base
internal import Settings
internal import Streams

/// How many streams and viewers the descriptors and the memory of a process are enough for.
enum CapacityCheck {
  /// With fewer a server is full after a handful of viewers.
  static let fewest = 1024
  /// What a busy server needs; the units allow more.
  static let usual = 65_536

  static func findings(_ configuration: ServerConfiguration) -> [Finding] {
    DescriptorLimit.raise()
    let memory = WindowBudget(perStream: configuration.streamMemory, inAll: configuration.mediaMemory)
    let capacity = ServerCapacity(of: configuration, DescriptorBudget(), memory)
    return [
      finding(limit: capacity.descriptors, streams: capacity.streams, viewers: capacity.connections),
      .ok(
        "memory", "",
        "\(capacity.mediaBytes >> 20) MiB for media of all streams, \(capacity.mediaBytesPerStream >> 20) MiB for one"),
    ]
  }

  static func finding(limit: Int, streams: Int, viewers: Int) -> Finding {
    let found = "\(limit) (ulimit -n): room for \(streams) streams, or \(viewers) connections of viewers"
    let raise = "raise the limit: LimitNOFILE= of the unit, or ulimit -n \(usual)"
    if limit < fewest { return .problem("descriptors", "", found, raise) }
    return limit < usual ? .advice("descriptors", "", found, raise) : .ok("descriptors", "", found)
  }
}
