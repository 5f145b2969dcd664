internal import CProcess
internal import Glibc

/// Restrictions of a process before it handles untrusted input. It dies with the server and gains no rights. It cannot
/// open, connect or start anything, or write files, and its memory is limited. If the system refuses one restriction,
/// the others still apply.
package enum WorkerConfinement {
  /// What a process may do besides computing.
  package enum Calls {
    case computing
    /// It also sends and receives datagrams by the sockets that it was given.
    case datagrams
  }

  /// - Parameters:
  ///   - addressSpace: most bytes of addresses.
  ///   - openFiles: most descriptors.
  ///   - niceness: priority below that of the server.
  package static func apply(_ calls: Calls, addressSpace: UInt, openFiles: UInt, niceness: Int32) {
    _ = weir_die_with_parent()
    _ = weir_gain_nothing()
    _ = weir_be_private()
    limit(RLIMIT_AS, addressSpace)
    limit(RLIMIT_NOFILE, openFiles)
    limit(RLIMIT_FSIZE, 0)
    limit(RLIMIT_CORE, 0)
    _ = nice(niceness)
    // The last one, because it forbids most of the calls above.
    switch calls {
    case .computing: _ = weir_allow_computing_only()
    case .datagrams: _ = weir_allow_datagrams_too()
    }
  }

  private static func limit(_ resource: __rlimit_resource, _ value: UInt) {
    var limits = rlimit()
    guard getrlimit(__rlimit_resource_t(resource.rawValue), &limits) == 0 else { return }
    limits.rlim_max = min(limits.rlim_max, rlim_t(value))
    limits.rlim_cur = limits.rlim_max
    setrlimit(__rlimit_resource_t(resource.rawValue), &limits)
  }
}
