internal import Glibc

/// The limit of file descriptors. Every connection and every segment in memory needs one.
enum DescriptorLimit {
  /// Raises the soft limit to the hard one, which any process may do.
  static func raise() {
    var limit = rlimit()
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    guard getrlimit(resource, &limit) == 0, limit.rlim_cur < limit.rlim_max else { return }
    limit.rlim_cur = limit.rlim_max
    setrlimit(resource, &limit)
  }
}
