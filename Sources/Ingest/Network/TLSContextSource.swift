package import NIOSSL

/// The certificate and settings of TLS for the next connection: they may be others than those of the last.
package typealias TLSContextSource = @Sendable () -> NIOSSLContext
