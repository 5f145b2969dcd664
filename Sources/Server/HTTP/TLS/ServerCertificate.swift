package import Base
internal import Glibc
package import Logging
internal import NIOCore
internal import NIOPosix
internal import NIOSSL
internal import Synchronization
internal import UnixSignals

/// The certificate of HTTPS and RTMPS. Read at the start, and again when its files change or on SIGHUP. New connections use the
/// newest valid pair; open connections keep theirs.
package final class ServerCertificate: Sendable {
  /// Days before the end of validity at which the log warns.
  static let warnings = [14, 3, 1]
  /// The protocols in ALPN (RFC 7301) for viewers, in order of preference.
  static let protocols = ["h2", "http/1.1"]

  private struct Contexts {
    var https: NIOSSLContext
    var rtmps: NIOSSLContext
    /// Serial number and end of validity.
    var description: String
    /// The end of validity, in seconds since 1970.
    var end: Int
    var hosts: AllowedHosts

    init(_ pair: TLSFiles.Pair, _ minimum: TLSMinimum) throws(TLSFilesError) {
      // HTTP/2 needs TLS 1.2 (RFC 9113 §9.2); RTMPS encoders may be older.
      let https = minimum == .tls13 ? TLSMinimum.tls13 : .tls12
      self.https = try pair.context(applicationProtocols: ServerCertificate.protocols, minimumVersion: https.version)
      rtmps = try pair.context(minimumVersion: minimum.version)
      end = pair.chain.first.map { Int($0.notValidAfter) } ?? 0
      hosts = AllowedHosts(pair.hosts)
      let serial = pair.chain.first?.serialNumber.map(Self.hexadecimal).joined() ?? ""
      description =
        "serial \(serial), valid until \(UTCText(secondsSince1970: Int64(end)).internet)"
    }

    private static func hexadecimal(_ byte: UInt8) -> String {
      (byte < 16 ? "0" : "") + String(byte, radix: 16)
    }
  }

  private struct State {
    var contexts: Contexts
    /// The files at the last read, successful or not.
    var read: [FileFingerprint?]
    /// The lowest number of days in a warning for this certificate.
    var warned = Int.max
  }

  private let files: TLSFiles
  private let minimum: TLSMinimum
  private let interval: Duration
  private let logger: Logger
  private let state: Mutex<State>

  /// Reads the pair, or throws what is wrong with it. Blocks on the disk, so use it only at the start. The files are checked
  /// every `interval`.
  package init(
    files: TLSFiles, minimumVersion: TLSMinimum = .tls12, interval: Duration = .seconds(2), logger: Logger
  ) throws(TLSFilesError) {
    self.files = files
    minimum = minimumVersion
    self.interval = interval
    self.logger = logger
    let found = Self.fingerprints(files)
    state = Mutex(State(contexts: try Contexts(files.read(), minimumVersion), read: found))
    warnOfEnd()
  }

  /// For HTTP connections.
  package var https: TLSContextSource { { self.state.withLock { $0.contexts.https } } }

  /// For RTMP connections.
  package var rtmps: TLSContextSource { { self.state.withLock { $0.contexts.rtmps } } }

  /// The names that it is for.
  package var hosts: AllowedHosts { state.withLock { $0.contexts.hosts } }

  /// Watches the files until the task is cancelled.
  package func watch() async {
    await withTaskGroup(of: Void.self) { group in
      group.addTask { await self.poll() }
      group.addTask {
        for await _ in await UnixSignalsSequence(trapping: .sighup) {
          await self.onThread { self.reload(Self.fingerprints(self.files)) }
        }
      }
    }
  }

  private func poll() async {
    var last = state.withLock { $0.read }
    while !Task.isCancelled {
      try? await Task.sleep(for: interval)
      let before = last
      last = await onThread { self.look(before) } ?? before
    }
  }

  /// Reads changed files only after they stay unchanged for one interval: a new pair is written in two steps.
  private func look(_ before: [FileFingerprint?]) -> [FileFingerprint?] {
    let found = Self.fingerprints(files)
    if found == before, found != state.withLock({ $0.read }) { reload(found) }
    warnOfEnd()
    return found
  }

  private func onThread<Result: Sendable>(_ body: @escaping @Sendable () -> Result) async -> Result? {
    try? await NIOSingletons.posixBlockingThreadPool.runIfActive(body)
  }

  /// Reads the current pair. An invalid one is logged and not used.
  private func reload(_ found: [FileFingerprint?]) {
    do {
      let contexts = try Contexts(files.read(), minimum)
      state.withLock { $0 = State(contexts: contexts, read: found) }
      logger.notice("new connections get the certificate \(contexts.description)")
      warnOfEnd()
    } catch {
      let old = state.withLock { state in
        state.read = found
        return state.contexts.description
      }
      logger.error("the new certificate is not taken, \(old) stays in use: \(error)")
    }
  }

  private func warnOfEnd() {
    let seconds = state.withLock { $0.contexts.end } - time(nil)
    let days = seconds / 86_400
    guard let threshold = Self.warnings.last(where: { seconds < $0 * 86_400 }) else { return }
    let isNew = state.withLock { state in
      defer { state.warned = min(state.warned, seconds < 0 ? -1 : threshold) }
      return state.warned > (seconds < 0 ? -1 : threshold)
    }
    guard isNew else { return }
    let path = LogText.escaped(files.certificate)
    logger.warning(
      seconds < 0
        ? "the certificate in \(path) has expired: viewers and publishers refuse it; put a new one in its place"
        : "the certificate in \(path) expires in \(days) days: put a new one in its place, it is taken without a restart"
    )
  }

  private static func fingerprints(_ files: TLSFiles) -> [FileFingerprint?] {
    [FileFingerprint(of: files.certificate), FileFingerprint(of: files.key)]
  }
}
