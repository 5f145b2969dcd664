internal import Glibc

/// Reads the memory limit and the available memory of the process from its control groups (versions 1 and 2) and the
/// machine. Each value is the lowest over all levels, so the two may come from different levels.
package struct MemorySources: Sendable {
  /// In bytes.
  package struct Reading: Sendable, Hashable {
    package var limit: Int
    package var available: Int
    /// TCP holds more than the pressure point of its memory (`net.ipv4.tcp_mem`), and slows all connections.
    package var isTCPUnderPressure = false
  }

  /// The files of one control group.
  private struct Group: Sendable {
    let limit: String
    let usage: String
    let statistics: String
    /// The line of `statistics` with file pages that the kernel can reclaim at any time.
    let reclaimable: String
  }

  private let groups: [Group]

  /// Finds the control groups of this process. `root` is their mount point.
  package init(root: String = "/sys/fs/cgroup") {
    var groups: [Group] = []
    for line in (KernelFile.text("/proc/self/cgroup") ?? "").split(separator: "\n") {
      let fields = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
      guard fields.count == 3 else { continue }
      if fields[1].split(separator: ",").contains("memory") {
        for folder in Self.levels(root + "/memory", String(fields[2])) {
          groups.append(
            Group(
              limit: folder + "/memory.limit_in_bytes", usage: folder + "/memory.usage_in_bytes",
              statistics: folder + "/memory.stat", reclaimable: "total_inactive_file"))
        }
      } else if fields[0] == "0" {
        for folder in Self.levels(root, String(fields[2])) {
          groups.append(
            Group(
              limit: folder + "/memory.max", usage: folder + "/memory.current", statistics: folder + "/memory.stat",
              reclaimable: "inactive_file"))
        }
      }
    }
    self.groups = groups
  }

  /// The group and its ancestors. In a container the path may not exist; the root then is that of the container.
  private static func levels(_ root: String, _ path: String) -> [String] {
    var folders = [root]
    for part in path.split(separator: "/") where part != ".." {
      folders.append(folders[folders.count - 1] + "/" + part)
    }
    return folders
  }

  /// Nil when the kernel gives no values.
  package func read() -> Reading? {
    let levels = groups.compactMap(Self.read) + [Self.machine].compactMap(\.self)
    guard let limit = levels.map(\.limit).min(), let available = levels.map(\.available).min() else { return nil }
    return Reading(limit: limit, available: available, isTCPUnderPressure: Self.isTCPUnderPressure)
  }

  /// Of the whole machine. A container does not see the pressure point; by default it is a sixteenth of the machine's pages.
  private static var isTCPUnderPressure: Bool {
    guard let text = KernelFile.text("/proc/net/sockstat"),
      let line = text.split(separator: "\n").first(where: { $0.utf8.starts(with: "TCP:".utf8) }),
      let held = line.split(separator: " ").last.flatMap({ Int($0) })
    else { return false }
    let bounds = KernelFile.text("/proc/sys/net/ipv4/tcp_mem")?.split(whereSeparator: \.isWhitespace) ?? []
    let pressure = bounds.count == 3 ? Int(bounds[1]) : machine.map { $0.limit / Self.page / 16 }
    return pressure.map { held >= $0 } ?? false
  }

  /// Bytes of a page.
  private static let page = 4096

  private static func read(_ group: Group) -> Reading? {
    guard let limit = KernelFile.text(group.limit).flatMap(number), limit < 1 << 60,
      let usage = KernelFile.text(group.usage).flatMap(number)
    else { return nil }
    let reclaimable = value(of: group.reclaimable, in: KernelFile.text(group.statistics) ?? "") ?? 0
    return Reading(limit: limit, available: max(0, limit - usage + reclaimable))
  }

  private static var machine: Reading? {
    guard let text = KernelFile.text("/proc/meminfo"), let total = value(of: "MemTotal:", in: text),
      let available = value(of: "MemAvailable:", in: text)
    else { return nil }
    return Reading(limit: total << 10, available: available << 10)
  }

  /// The first number in the line that begins with this word. Compared by bytes: characters cost a hundred times as much,
  /// and this is read each second.
  private static func value(of name: String, in text: String) -> Int? {
    let blank = UInt8(ascii: " ")
    for line in text.utf8.split(separator: UInt8(ascii: "\n")) where line.starts(with: name.utf8) {
      let words = line.split(separator: blank)
      if words.count >= 2, words[0].elementsEqual(name.utf8) { return Int(Substring(words[1])) }
    }
    return nil
  }

  /// Nil for "max" and any other text that is not a number.
  private static func number(_ text: String) -> Int? { Int(text.prefix { $0 != "\n" }) }
}
