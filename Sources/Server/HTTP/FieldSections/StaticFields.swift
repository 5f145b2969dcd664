/// The table of fields that both sides know from the start (RFC 7541, appendix A).
struct StaticFields: Sendable {
  static let table = StaticFields()

  /// Names of the table with an index that the encoder or the decoder uses.
  static let path = 4
  static let status = 8
  static let count = 61

  private static let fields: [(name: String, value: String)] = [
    (":authority", ""), (":method", "GET"), (":method", "POST"), (":path", "/"), (":path", "/index.html"),
    (":scheme", "http"), (":scheme", "https"), (":status", "200"), (":status", "204"), (":status", "206"),
    (":status", "304"), (":status", "400"), (":status", "404"), (":status", "500"), ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"), ("accept-language", ""), ("accept-ranges", ""), ("accept", ""),
    ("access-control-allow-origin", ""), ("age", ""), ("allow", ""), ("authorization", ""), ("cache-control", ""),
    ("content-disposition", ""), ("content-encoding", ""), ("content-language", ""), ("content-length", ""),
    ("content-location", ""), ("content-range", ""), ("content-type", ""), ("cookie", ""), ("date", ""), ("etag", ""),
    ("expect", ""), ("expires", ""), ("from", ""), ("host", ""), ("if-match", ""), ("if-modified-since", ""),
    ("if-none-match", ""), ("if-range", ""), ("if-unmodified-since", ""), ("last-modified", ""), ("link", ""),
    ("location", ""), ("max-forwards", ""), ("proxy-authenticate", ""), ("proxy-authorization", ""), ("range", ""),
    ("referer", ""), ("refresh", ""), ("retry-after", ""), ("server", ""), ("set-cookie", ""),
    ("strict-transport-security", ""), ("transfer-encoding", ""), ("user-agent", ""), ("vary", ""), ("via", ""),
    ("www-authenticate", ""),
  ]

  /// All texts, one after the other.
  let bytes: [UInt8]
  private let places: [FieldPlace]

  private init() {
    var bytes: [UInt8] = []
    places = Self.fields.map { field in
      defer { bytes += Array((field.name + field.value).utf8) }
      return FieldPlace(start: bytes.count, name: field.name.utf8.count, value: field.value.utf8.count)
    }
    self.bytes = bytes
  }

  /// The field of an index from 1 on.
  func place(_ index: Int) -> FieldPlace { places[index &- 1] }

  /// The lowest index of a name; nil for others.
  static func index(of name: String) -> Int? { fields.firstIndex { $0.name == name }.map { $0 + 1 } }

  /// The index of a status; nil for others.
  static func index(ofStatus status: String) -> Int? {
    fields.firstIndex { $0.name == ":status" && $0.value == status }.map { $0 + 1 }
  }
}

/// Where a field lies in the bytes of a table: its name, and behind it its value.
struct FieldPlace: Sendable {
  var start: Int
  let name: Int
  let value: Int

  var nameRange: Range<Int> { start..<start &+ name }
  var valueRange: Range<Int> { start &+ name..<start &+ name &+ value }
  /// What it counts for the size of a table or a list (RFC 7541 §4.1).
  var size: Int { name &+ value &+ 32 }
}
