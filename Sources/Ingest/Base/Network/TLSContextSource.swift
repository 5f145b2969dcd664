package import NIOSSL

/// Returns the TLS certificate and settings for the next connection. They may change between connections.
package typealias TLSContextSource = @Sendable () -> NIOSSLContext
