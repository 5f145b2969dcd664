package import NIOSSL

/// The oldest accepted version of TLS. For HTTPS it is at least 1.2 (RFC 9113 §9.2).
package enum TLSMinimum: String, CaseIterable, Sendable {
  case tls10 = "1.0"
  case tls11 = "1.1"
  case tls12 = "1.2"
  case tls13 = "1.3"

  package var version: TLSVersion {
    switch self {
    case .tls10: .tlsv1
    case .tls11: .tlsv11
    case .tls12: .tlsv12
    case .tls13: .tlsv13
    }
  }
}
