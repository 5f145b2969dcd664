import Base
import Glibc
import Synchronization
import Testing

/// Processes as workers are started and ended, with a shell in their place.
@Suite struct WorkerLauncherTests {
  /// Starts a shell, gives the lines that it writes to its socket up to one that is a point, and ends it.
  private func lines(of script: String) async throws -> (lines: [String], ending: String) {
    let result = Mutex<(lines: [String], ending: String)?>(nil)
    try await DedicatedThread.run(named: "launcher") {
      let launcher = WorkerLauncher.process(executable: "/bin/sh", arguments: ["-c", script])
      guard let worker = try? launcher.start() else { return }
      var text: [UInt8] = []
      var chunk = [UInt8](repeating: 0, count: 4096)
      while !text.suffix(3).elementsEqual("\n.\n".utf8) {
        let count = recv(worker.socket, &chunk, chunk.count, 0)
        guard count > 0 else { break }
        text += chunk[..<count]
      }
      let lines = String(decoding: text, as: UTF8.self).split(separator: "\n").dropLast().map(String.init)
      let ending = worker.end()
      result.withLock { $0 = (lines, ending) }
    }
    return try #require(result.withLock { $0 })
  }

  @Test func aWorkerHasASocketAndNothingElse() async throws {
    // Where its output goes at first; then, with the socket for its output, all that it has below 10, where the shell's own
    // are.
    let told = try await lines(
      of: "first=$(readlink /proc/$$/fd/1); exec >&0; echo $first;"
        + " for n in 0 1 2 3 4 5 6 7 8 9; do readlink /proc/$$/fd/$n; done; echo .; sleep 60")
    let socket = told.lines.dropFirst().first ?? ""
    #expect(socket.hasPrefix("socket:"))
    #expect(told.lines == ["/dev/null", socket, socket, "/dev/null"])
    #expect(told.ending == "signal 9 ended it")
  }

  @Test func whateverItStartedEndsWithIt() async throws {
    let told = try await lines(of: "sleep 300 & echo $! >&0; echo . >&0; wait")
    let child = try #require(told.lines.first.flatMap { Int32($0) })
    var isGone = false
    for _ in 0..<250 where !isGone {
      isGone = Self.isGone(child)
      if !isGone { try await Task.sleep(for: .milliseconds(20)) }
    }
    if !isGone { kill(child, SIGKILL) }
    #expect(isGone)
  }

  /// Ways in which a worker may fail.
  private static let failures = [
    "exit 1", "kill -SEGV $$", "kill -STOP $$", "while :; do echo garbage >&0; done", "sleep 300 & exit 3", "sleep 300",
  ]

  @Test func ofAHundredThatFailNoneIsLeftBehind() async throws {
    let left = Mutex<[Int32]?>(nil)
    try await DedicatedThread.run(named: "launcher") {
      var processes: [Int32] = []
      for number in 0..<100 {
        let script = Self.failures[number % Self.failures.count]
        let launcher = WorkerLauncher.process(executable: "/bin/sh", arguments: ["-c", script])
        guard let worker = try? launcher.start(), let process = worker.processID else { return }
        // Some are ended before they have failed, some long after.
        if number % 3 == 0 { usleep(3000) }
        _ = worker.end()
        processes.append(process)
      }
      // A worker that was waited for has no process any more, not even a zombie.
      left.withLock { left in left = processes.filter { kill($0, 0) == 0 } }
    }
    #expect(try #require(left.withLock { $0 }) == [])
  }

  /// The process is gone, or is a zombie.
  private static func isGone(_ process: Int32) -> Bool {
    let file = open("/proc/\(process)/stat", O_RDONLY)
    guard file >= 0 else { return true }
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: 512)
    let count = read(file, &bytes, bytes.count)
    return count <= 0 || String(decoding: bytes[..<count], as: UTF8.self).contains(") Z ")
  }
}
