internal import Base
internal import Glibc
internal import NIOCore
internal import Settings

/// The limit of file descriptors. Every connection and every stream needs some.
enum DescriptorLimit {
  /// Fewer leave no room for a stream. Too few for the event loops, one a processor, would end the process (NIO traps).
  static var least: Int { max(64, 32 + 4 * System.coreCount) }

  /// Raises the soft limit to the hard one, which any process may do.
  static func raise() {
    var limit = rlimit()
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    guard getrlimit(resource, &limit) == 0, limit.rlim_cur < limit.rlim_max else { return }
    limit.rlim_cur = limit.rlim_max
    setrlimit(resource, &limit)
  }

  /// Raises the limit, and throws if a server cannot run with it.
  static func raiseForServer() throws(ConfigurationError) {
    raise()
    let limit = DescriptorBudget().limit
    guard limit < least else { return }
    throw ConfigurationError(
      .configuration,
      "the limit of open files is \(limit), and weir needs \(least) at least; raise it: ulimit -Hn 65536 as root, or "
        + "LimitNOFILE=65536 in the unit")
  }
}
