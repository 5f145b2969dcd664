internal import API
internal import Base
internal import HTTP
internal import Settings
internal import Streams

extension ServerCapacity {
  /// What a process with these settings has room for. The API, the banner and `weir doctor` say the same.
  init(of configuration: ServerConfiguration, _ budget: DescriptorBudget, _ media: WindowBudget) {
    let descriptors = StreamDescriptors(budget: budget, sinks: configuration.sinksPerStream)
    let fewest = configuration.streams.all.map { descriptors.capacity(of: $0.settings) }.min() ?? 0
    self.init(
      streams: min(configuration.nameLimits.streams, fewest),
      connections: min(configuration.httpLimits.connections, budget.viewers), descriptors: budget.limit,
      mediaBytes: media.inAll, mediaBytesPerStream: media.perStream)
  }
}
