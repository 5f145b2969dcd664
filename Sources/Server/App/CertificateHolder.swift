internal import HTTP
internal import Logging
internal import Settings
internal import Synchronization

/// The certificate of HTTPS and RTMPS: read when the first listener needs it, at start or at a reload.
final class CertificateHolder: Sendable {
  private let state = Mutex(State())
  private let logger: Logger

  private struct State {
    var certificate: ServerCertificate?
    /// Watches its files. Nil before the server runs, and without a certificate.
    var watch: Task<Void, Never>?
    var isRunning = false
  }

  init(logger: Logger) { self.logger = logger }

  /// Nil where nothing is served over TLS.
  var current: ServerCertificate? { state.withLock { $0.certificate } }

  /// Reads the certificate if a listener of the configuration needs it and there is none.
  func prepare(
    for configuration: ServerConfiguration, _ protocols: [PublisherProtocol]
  ) throws(ConfigurationError) {
    let isSecure = protocols.contains { $0.places(configuration).contains(where: \.isSecure) }
    guard configuration.https != nil || isSecure, current == nil else { return }
    guard let files = configuration.tls else {
      throw ConfigurationError(.usage, "TLS needs a certificate: give --tls-cert and --tls-key")
    }
    do throws(TLSFilesError) {
      let certificate = try ServerCertificate(
        files: files, minimumVersion: configuration.minimumTLS, logger: logger)
      state.withLock { $0.certificate = certificate }
      watch()
    } catch {
      throw ConfigurationError(.configuration, error.description)
    }
  }

  /// Watches the files from now on.
  func begin() {
    state.withLock { $0.isRunning = true }
    watch()
  }

  func end() { state.withLock { $0.watch?.cancel() } }

  private func watch() {
    state.withLock { state in
      guard state.isRunning, state.watch == nil, let certificate = state.certificate else { return }
      state.watch = Task { await certificate.watch() }
    }
  }
}
