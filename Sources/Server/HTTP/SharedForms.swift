internal import NIOCore
internal import Storage

/// The plain and the gzip form of a response that several clients get, for one version of HTTP. Each is encoded once a second,
/// since it has the date. Confined to one event loop.
struct SharedForms<Form: FlatForm> {
  private struct Encoded {
    private var form: Form?
    private var uses = 0

    /// Encoded at the first use, in one buffer from the second on.
    mutating func use(_ encode: () -> (form: Form, isFinal: Bool)) -> Form {
      uses &+= 1
      if uses > 2, let form { return form }
      if let flat = form?.flat {
        form = flat
        return flat
      }
      let (encoded, isFinal) = encode()
      if isFinal { form = encoded }
      return encoded
    }
  }

  private var plain = Encoded()
  private var gzip = Encoded()
  private var second: Int64 = .min

  /// `encode` makes a form, and says whether it may be kept.
  mutating func use(acceptsGzip: Bool, in second: Int64, _ encode: () -> (form: Form, isFinal: Bool)) -> Form {
    if second != self.second {
      (plain, gzip) = (Encoded(), Encoded())
      self.second = second
    }
    return acceptsGzip ? gzip.use(encode) : plain.use(encode)
  }
}

/// A form of a response that can have its body in one buffer. Copying a body once costs less than sending it in several pieces
/// hundreds of times.
protocol FlatForm {
  /// The same, with the body in one buffer if that is possible.
  var flat: Self { get }
}

extension [BodyPiece] {
  /// Bodies up to this size are copied into one buffer when a second client requests them.
  static var flatBytes: Int { 128 * 1024 }

  /// All bytes behind `head`; nil when there are too many, or when some are on a disk.
  func flattened(after head: ByteBuffer = ByteBuffer()) -> ByteBuffer? {
    guard totalLength <= Self.flatBytes else { return nil }
    var buffer = ByteBuffer()
    buffer.reserveCapacity(head.readableBytes + totalLength)
    buffer.writeImmutableBuffer(head)
    for piece in self {
      switch piece {
      case .bytes(let bytes): buffer.writeImmutableBuffer(bytes)
      case .file(let range):
        guard range.file.kind == .memory, range.copy(into: &buffer) else { return nil }
      }
    }
    return buffer
  }
}
