internal import Base
internal import Glibc

/// Kernel figures of this process, under the names that Prometheus' own clients use.
struct ProcessFigures: Sendable {
  var cpuSeconds: Double?
  var residentBytes: Int?
  var virtualBytes: Int?
  var openDescriptors: Int?
  var descriptorLimit: Int?
  /// Seconds since 1970.
  var startSeconds: Double?

  /// Reads the figures. Listing thousands of descriptors takes milliseconds.
  static func read() -> ProcessFigures {
    var figures = ProcessFigures()
    var usage = rusage()
    if getrusage(RUSAGE_SELF, &usage) == 0 {
      figures.cpuSeconds = seconds(usage.ru_utime) + seconds(usage.ru_stime)
    }
    // proc(5): size and resident set, in pages.
    if let pages = KernelFile.text("/proc/self/statm")?.split(separator: " ").prefix(2).map({ Int($0) }),
      pages.count == 2
    {
      let page = sysconf(Int32(_SC_PAGESIZE))
      figures.virtualBytes = pages[0].map { $0 * page }
      figures.residentBytes = pages[1].map { $0 * page }
    }
    figures.openDescriptors = descriptors()
    var limit = rlimit()
    if getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 {
      figures.descriptorLimit = Int(clamping: limit.rlim_cur)
    }
    figures.startSeconds = start
    return figures
  }

  private static func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1_000_000 }

  private static func descriptors() -> Int? {
    guard let folder = opendir("/proc/self/fd") else { return nil }
    defer { closedir(folder) }
    var count = 0
    while readdir(folder) != nil { count += 1 }
    // Without ".", ".." and the descriptor of the listing.
    return max(0, count - 3)
  }

  /// proc(5): field 22 of `stat`, in ticks since the machine's start. The second field is in parentheses and may contain any
  /// character.
  private static let start: Double? = {
    guard let stat = KernelFile.text("/proc/self/stat"), let end = stat.lastIndex(of: ")") else { return nil }
    let fields = stat[stat.index(after: end)...].split(separator: " ")
    guard fields.count > 19, let ticks = Double(fields[19]) else { return nil }
    for line in (KernelFile.text("/proc/stat") ?? "").split(separator: "\n") where line.hasPrefix("btime ") {
      return Double(line.dropFirst(6)).map { $0 + ticks / Double(sysconf(Int32(_SC_CLK_TCK))) }
    }
    return nil
  }()
}
