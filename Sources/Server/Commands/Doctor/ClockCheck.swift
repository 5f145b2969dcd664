internal import CMachine

/// Whether the clock of the machine follows a better one. Times of day in playlists and names of recordings are of this clock.
enum ClockCheck {
  static func findings() -> [Finding] {
    var error = 0
    return [finding(weir_clock_follows(&error), microseconds: error)]
  }

  /// - Parameter state: 1 or 0; -1 where the kernel does not say.
  static func finding(_ state: CInt, microseconds: Int) -> Finding {
    switch state {
    case 1: .ok("clock", "", "follows a time server, within \(microseconds / 1000) ms")
    case 0:
      .advice(
        "clock", "", "follows no time server",
        "install one that keeps it: apt-get install systemd-timesyncd, or chrony; in a container the host does so")
    default: .advice("clock", "", "the kernel does not say whether it is right", "compare it: date -u")
    }
  }
}
