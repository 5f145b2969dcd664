internal import CProcess
internal import Glibc

/// What a process gives up before it decodes what strangers send: it dies with the server, gains no rights, opens, connects
/// and starts nothing, writes no files, and takes only so much memory. Where the system refuses one of these, the others
/// still hold.
enum WorkerConfinement {
  static func apply() {
    _ = weir_die_with_parent()
    _ = weir_gain_nothing()
    _ = weir_be_private()
    limit(RLIMIT_AS, TranscodeLimits.addressSpace)
    limit(RLIMIT_NOFILE, TranscodeLimits.openFiles)
    limit(RLIMIT_FSIZE, 0)
    limit(RLIMIT_CORE, 0)
    // Publishers and viewers come first.
    _ = nice(5)
    // The last, because most of the above are calls that it forbids.
    _ = weir_allow_computing_only()
  }

  private static func limit(_ resource: __rlimit_resource, _ value: UInt) {
    var limits = rlimit()
    guard getrlimit(__rlimit_resource_t(resource.rawValue), &limits) == 0 else { return }
    limits.rlim_max = min(limits.rlim_max, rlim_t(value))
    limits.rlim_cur = limits.rlim_max
    setrlimit(__rlimit_resource_t(resource.rawValue), &limits)
  }
}
