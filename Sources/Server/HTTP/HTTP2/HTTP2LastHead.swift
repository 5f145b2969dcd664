internal import NIOCore
internal import NIOHPACK

/// The head of a connection's last request. A client sends the same fields with each request but for the path, and comparing
/// them costs less than converting them: those of its table (RFC 7541 §2.3.2) are the same objects.
struct HTTP2LastHead {
  struct Known {
    let fields: HPACKHeaders
    let head: RequestHead
    /// Of all fields but the path.
    let bytes: Int
  }

  private(set) var known: Known?

  /// As `HTTP2RequestHead.make`.
  mutating func make(_ fields: HPACKHeaders, isComplete: Bool, limits: HTTPLimits) -> RequestHead? {
    if isComplete, let known, let path = Self.path(of: fields, likeIn: known.fields) {
      guard known.bytes &+ path.utf8.count <= limits.headerBytes else { return nil }
      return known.head.asking(for: ByteBuffer(string: path))
    }
    guard let head = HTTP2RequestHead.make(fields, isComplete: isComplete, limits: limits) else { return nil }
    if isComplete {
      let path = fields.first { $0.name == ":path" }?.value.utf8.count ?? 0
      let bytes = fields.reduce(-path) { $0 + $1.name.utf8.count + $1.value.utf8.count }
      // Longer ones are converted each time, since they are kept for each connection.
      let isShort = bytes <= LastClient.longestFields && path <= LastClient.longestFields
      known = isShort ? Known(fields: fields, head: head, bytes: bytes) : nil
    }
    return head
  }

  /// The path, if all else is as in `last`, in the same order.
  private static func path(of fields: HPACKHeaders, likeIn last: HPACKHeaders) -> String? {
    guard fields.count == last.count else { return nil }
    var path: String?
    for (field, old) in zip(fields, last) {
      guard field.name == old.name else { return nil }
      if field.name == ":path" { path = field.value } else if field.value != old.value { return nil }
    }
    return path
  }
}
