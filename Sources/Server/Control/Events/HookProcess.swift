internal import Glibc

/// Runs a program for an event. It inherits no descriptor, no variable and no signal handling of the server. Its output goes nowhere.
enum HookProcess {
  /// Seconds that a program may run.
  static let patience = 600

  enum End: Sendable, Hashable {
    case exited(Int32)
    case signalled(Int32)
    /// It ran for too long and was ended.
    case tooLong
    /// The server stops.
    case stopped
    case notStarted(String)
  }

  /// Blocks until the program has ended.
  ///
  /// - Parameters:
  ///   - input: what it reads from its standard input; less than a pipe holds.
  ///   - mustStop: asked again and again; true ends the program.
  static func run(
    _ words: [String], input: String, patience: Int = patience, mustStop: () -> Bool = { false }
  ) -> End {
    guard let program = words.first else { return .notStarted("no program") }
    var ends: [Int32] = [-1, -1]
    guard pipe2(&ends, O_CLOEXEC) == 0 else { return .notStarted(text(errno)) }
    // The pipe takes it at once: 64 KiB fit, and an event is shorter.
    let bytes = Array(input.utf8.prefix(32 << 10))
    _ = write(ends[1], bytes, bytes.count)
    close(ends[1])
    defer { close(ends[0]) }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO)
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0)
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0)
    posix_spawn_file_actions_addclosefrom_np(&actions, 3)
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var (none, all) = (sigset_t(), sigset_t())
    sigemptyset(&none)
    sigfillset(&all)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setsigdefault(&attributes, &all)
    posix_spawnattr_setpgroup(&attributes, 0)
    posix_spawnattr_setflags(
      &attributes, Int16(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
    var arguments = words.map { strdup($0) } + [nil]
    defer { for argument in arguments { free(argument) } }
    let variables: [String] = ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"]
    var environment = variables.map { strdup($0) } + [nil]
    defer { for variable in environment { free(variable) } }
    var process = pid_t()
    let code = posix_spawn(&process, program, &actions, &attributes, &arguments, &environment)
    guard code == 0 else { return .notStarted(text(code)) }
    return wait(for: process, patience: patience, mustStop: mustStop)
  }

  private static func wait(for process: pid_t, patience: Int, mustStop: () -> Bool) -> End {
    var waited = 0
    var pause: UInt32 = 1000
    var forced: End?
    while true {
      var status: Int32 = 0
      let found = waitpid(process, &status, WNOHANG)
      if found == process {
        // What it left behind in its group ends with it.
        kill(-process, SIGKILL)
        if let forced { return forced }
        let signal = status & 0x7f
        return signal == 0 ? .exited(status >> 8 & 0xff) : .signalled(signal)
      }
      if found < 0, errno != EINTR { return .notStarted(text(errno)) }
      if forced == nil, mustStop() { forced = .stopped }
      if forced == nil, waited >= patience * 1_000_000 { forced = .tooLong }
      if forced != nil { kill(-process, SIGKILL) }
      usleep(pause)
      waited += Int(pause)
      pause = min(100_000, pause * 2)
    }
  }

  private static func text(_ code: Int32) -> String { String(cString: strerror(code)) }
}
