internal import Glibc
internal import NIOSSL

extension TLSFiles {
  /// A chain and its key, as they were read.
  struct Pair {
    /// Leaf first; not empty.
    let chain: [NIOSSLCertificate]
    let key: NIOSSLPrivateKey
    fileprivate let files: TLSFiles

    /// A context for servers; throws where the key belongs to another certificate.
    ///
    /// - Parameters:
    ///   - applicationProtocols: names for ALPN (RFC 7301), the preferred one first; empty for none.
    ///   - minimumVersion: of TLS.
    func context(
      applicationProtocols: [String] = [], minimumVersion: TLSVersion
    ) throws(ConfigurationError) -> NIOSSLContext {
      var configuration = TLSConfiguration.makeServerConfiguration(
        certificateChain: chain.map { .certificate($0) }, privateKey: .privateKey(key))
      configuration.applicationProtocols = applicationProtocols
      configuration.minimumTLSVersion = minimumVersion
      do {
        return try NIOSSLContext(configuration: configuration)
      } catch {
        throw TLSFiles.failure(
          .tlsKey, files.key, "does not belong to the certificate in \(LogText.escaped(files.certificate))",
          "use the matching key")
      }
    }
  }

  /// Reads both files, or says in one line which one is at fault. Blocks on the disk: not for event loops.
  func read() throws(ConfigurationError) -> Pair {
    try Self.checkReadable(certificate, .tlsCert)
    try Self.checkReadable(key, .tlsKey)
    let chain: [NIOSSLCertificate]
    do {
      chain = try NIOSSLCertificate.fromPEMFile(certificate)
    } catch {
      throw Self.failure(.tlsCert, certificate, "holds no certificate in PEM form", "use the full chain, leaf first")
    }
    let privateKey: NIOSSLPrivateKey
    do {
      privateKey = try NIOSSLPrivateKey(file: key, format: .pem)
    } catch {
      throw Self.failure(.tlsKey, key, "holds no private key in PEM form without a passphrase", "convert it first")
    }
    return Pair(chain: chain, key: privateKey, files: self)
  }

  private static func checkReadable(_ path: String, _ setting: Setting) throws(ConfigurationError) {
    guard access(path, R_OK) == 0 else {
      throw failure(
        setting, path, "cannot read: \(String(cString: strerror(errno)))", "name a file that this user may read")
    }
  }

  private static func failure(
    _ setting: Setting, _ path: String, _ reason: String, _ advice: String
  ) -> ConfigurationError {
    let path = LogText.escaped(path)
    return ConfigurationError(.configuration, "\(path) (\(setting.flag) or \(setting.variable)): \(reason); \(advice)")
  }
}
