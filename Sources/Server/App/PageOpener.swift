internal import Glibc

/// Opens a page in the desktop's browser.
enum PageOpener {
  /// Does nothing without a desktop: the page's address has been printed.
  static func open(_ address: String) {
    guard getenv("DISPLAY") != nil || getenv("WAYLAND_DISPLAY") != nil else { return }
    // The shell exits at once, so there is no child process to wait for.
    let words = ["sh", "-c", #"xdg-open "$1" </dev/null >/dev/null 2>&1 &"#, "sh", address]
    var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) }
    defer { for argument in arguments { free(argument) } }
    arguments.append(nil)
    var child = pid_t()
    guard posix_spawn(&child, "/bin/sh", nil, nil, &arguments, environ) == 0 else { return }
    var status: Int32 = 0
    while waitpid(child, &status, 0) < 0, errno == EINTR {}
  }
}
