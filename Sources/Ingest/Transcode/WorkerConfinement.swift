internal import CProcess
internal import Glibc

/// Restrictions of a process before it decodes untrusted input. It dies with the server and gains no rights. It cannot
/// open, connect or start anything, or write files, and its memory is limited. If the system refuses one restriction,
/// the others still apply.
enum WorkerConfinement {
  static func apply() {
    _ = weir_die_with_parent()
    _ = weir_gain_nothing()
    _ = weir_be_private()
    limit(RLIMIT_AS, TranscodeLimits.addressSpace)
    limit(RLIMIT_NOFILE, TranscodeLimits.openFiles)
    limit(RLIMIT_FSIZE, 0)
    limit(RLIMIT_CORE, 0)
    // Publishers and viewers have priority.
    _ = nice(5)
    // The last one, because it forbids most of the calls above.
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
