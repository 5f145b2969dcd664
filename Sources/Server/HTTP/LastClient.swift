internal import Ingest
internal import NIOCore
internal import NIOHTTP1

/// The client of a connection's last request. A client sends the same fields with each request, and comparing them costs less
/// than reading them. Those that a trusted proxy sends for different clients differ.
struct LastClient {
  /// Longer fields are read each time, since they are kept for each connection. In bytes.
  static let longestFields = 512

  private enum Fields {
    case lines(ByteBuffer)
    case list(HTTPHeaders)

    func are(_ fields: RequestFields) -> Bool {
      switch (self, fields) {
      case (.lines(let own), .lines(let lines, _)): own == lines
      case (.list(let own), .list(let list, _)): LastClient.areSame(own, list)
      default: false
      }
    }
  }

  private var known: (fields: Fields, client: ClientID)?

  /// `make` reads the fields, and depends on nothing else that changes within a connection.
  mutating func client(with fields: RequestFields, _ make: () -> ClientID) -> ClientID {
    if let known, known.fields.are(fields) { return known.client }
    let client = make()
    if let kept = Self.kept(fields) { known = (kept, client) }
    return client
  }

  /// The fields for the next comparison; nil if they are too long.
  private static func kept(_ fields: RequestFields) -> Fields? {
    switch fields {
    case .lines(let lines, _):
      // Copied: a slice would keep the whole read buffer in memory.
      lines.readableBytes <= longestFields ? .lines(ByteBuffer(bytes: lines.readableBytesView)) : nil
    case .list(let list, _):
      list.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count } <= longestFields ? .list(list) : nil
    }
  }

  /// The same fields in the same order. Most are in the client's table of HTTP/2: then their texts are the same objects, which
  /// is seen without a look at their bytes. `==` of the lists would sort and lower-case them.
  private static func areSame(_ first: HTTPHeaders, _ second: HTTPHeaders) -> Bool {
    guard first.count == second.count else { return false }
    return zip(first, second).allSatisfy { $0.name == $1.name && $0.value == $1.value }
  }
}
