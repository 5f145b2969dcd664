internal import Base
internal import Glibc
internal import NIOSSL

/// The files of a certificate chain and its private key, both PEM.
package struct TLSFiles: Sendable, Hashable {
  package var certificate: String
  package var key: String
  /// The settings that named them, for errors: `--tls-cert or WEIR_TLS_CERT`.
  let certificateOrigin: String
  let keyOrigin: String

  package init(
    certificate: String, key: String, certificateOrigin: String = "the certificate",
    keyOrigin: String = "its private key"
  ) {
    self.certificate = certificate
    self.key = key
    self.certificateOrigin = certificateOrigin
    self.keyOrigin = keyOrigin
  }
}

/// Why a certificate cannot be used, in one line: the file, the reason, and what to do.
package struct TLSFilesError: Error, Sendable, Hashable, CustomStringConvertible {
  package let description: String
}

extension TLSFiles {
  /// A chain and its key.
  struct Pair {
    /// Leaf first; not empty.
    let chain: [NIOSSLCertificate]
    let key: NIOSSLPrivateKey
    fileprivate let files: TLSFiles

    /// What TLS 1.2 may use: forward secrecy, and encryption that authenticates (RFC 9325 §4.2). TLS 1.3 has its own.
    private static let suites: [NIOTLSCipher] = [
      .TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, .TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
      .TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, .TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
      .TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, .TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
    ]

    /// The names that the certificate is for (RFC 5280 §4.2.1.6, dNSName).
    var hosts: [String] {
      chain.first?._subjectAlternativeNames().compactMap { name in
        guard name.nameType == .dnsName else { return nil }
        return name.contents.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
      } ?? []
    }

    /// A context for servers. Throws when the key belongs to another certificate.
    ///
    /// - Parameters:
    ///   - applicationProtocols: names for ALPN (RFC 7301), in order of preference; empty for none.
    ///   - minimumVersion: of TLS.
    func context(
      applicationProtocols: [String] = [], minimumVersion: TLSVersion
    ) throws(TLSFilesError) -> NIOSSLContext {
      var configuration = TLSConfiguration.makeServerConfiguration(
        certificateChain: chain.map { .certificate($0) }, privateKey: .privateKey(key))
      configuration.applicationProtocols = applicationProtocols
      configuration.minimumTLSVersion = minimumVersion
      // TLS 1.0 and 1.1, which encoders may need, have suites with CBC only.
      if minimumVersion == .tlsv12 || minimumVersion == .tlsv13 { configuration.cipherSuiteValues = Self.suites }
      do {
        return try NIOSSLContext(configuration: configuration)
      } catch {
        throw files.failure(
          .key, "does not belong to the certificate in \(LogText.escaped(files.certificate))",
          "use the matching key")
      }
    }
  }

  /// Reads both files; the error names the faulty one. Blocks on the disk; do not call on an event loop.
  func read() throws(TLSFilesError) -> Pair {
    try checkReadable(.certificate)
    try checkReadable(.key)
    let chain: [NIOSSLCertificate]
    do {
      chain = try NIOSSLCertificate.fromPEMFile(certificate)
    } catch {
      throw failure(.certificate, "holds no certificate in PEM form", "use the full chain, leaf first")
    }
    let privateKey: NIOSSLPrivateKey
    do {
      privateKey = try NIOSSLPrivateKey(file: key, format: .pem)
    } catch {
      throw failure(.key, "holds no private key in PEM form without a passphrase", "convert it first")
    }
    return Pair(chain: chain, key: privateKey, files: self)
  }

  private enum File {
    case certificate, key
  }

  private func checkReadable(_ file: File) throws(TLSFilesError) {
    guard access(file == .certificate ? certificate : key, R_OK) == 0 else {
      throw failure(file, "cannot read: \(String(cString: strerror(errno)))", "name a file that this user may read")
    }
  }

  private func failure(_ file: File, _ reason: String, _ advice: String) -> TLSFilesError {
    let (path, origin) = file == .certificate ? (certificate, certificateOrigin) : (key, keyOrigin)
    return TLSFilesError(description: "\(LogText.escaped(path)) (\(origin)): \(reason); \(advice)")
  }
}
