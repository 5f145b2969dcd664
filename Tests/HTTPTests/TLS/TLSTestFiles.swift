import Glibc
@testable import HTTP
import NIOSSL
import Testing

/// A folder with a certificate and its key, made by the openssl tool and signed by itself; removed with the value's last
/// reference.
final class TLSTestFiles: Sendable {
  let folder: String

  var certificate: String { folder + "/cert.pem" }
  var key: String { folder + "/key.pem" }
  var files: TLSFiles { TLSFiles(certificate: certificate, key: key) }

  init(days: Int = 30, names: [String] = ["localhost"]) throws {
    var path = Array("/tmp/weir-tls-XXXXXX".utf8CString)
    try #require(mkdtemp(&path) != nil)
    folder = String(decoding: path.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    _ = try runTool([
      "/usr/bin/openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
      key, "-out", certificate, "-days", "\(days)", "-subj", "/CN=localhost",
      "-addext", "subjectAltName=\(names.map { "DNS:\($0)" }.joined(separator: ","))",
    ])
  }

  deinit {
    unlink(key)
    unlink(certificate)
    rmdir(folder)
  }
}

/// Contexts of a server with a certificate of its own and of clients that trust it; `protocols` are the server's.
func tlsContexts(_ protocols: [String] = [], client: [String] = []) throws -> (
  server: NIOSSLContext, client: NIOSSLContext
) {
  let files = try TLSTestFiles()
  let pair = try files.files.read()
  var configuration = TLSConfiguration.makeClientConfiguration()
  configuration.trustRoots = .certificates(pair.chain)
  configuration.certificateVerification = .noHostnameVerification
  configuration.applicationProtocols = client
  return (
    try pair.context(applicationProtocols: protocols, minimumVersion: TLSMinimum.tls12.version),
    try NIOSSLContext(configuration: configuration)
  )
}
