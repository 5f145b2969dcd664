internal import Base
internal import NIOCore

/// The client of a connection's last request. A client sends the same fields with each request, and comparing them costs less
/// than reading them. Those that a trusted proxy sends for different clients differ.
struct LastClient {
  /// Longer fields are read each time, since they are kept for each connection. In bytes.
  static let longestFields = 512

  private var known: (lines: ByteBuffer, client: ClientID)?

  /// `make` reads the fields, and depends on nothing else that changes within a connection.
  mutating func client(with fields: RequestFields, _ make: () -> ClientID) -> ClientID {
    if let known, known.lines == fields.lines { return known.client }
    let client = make()
    // Copied: a slice would keep the whole read buffer in memory.
    if fields.lines.readableBytes <= Self.longestFields {
      known = (ByteBuffer(bytes: fields.lines.readableBytesView), client)
    }
    return client
  }
}
