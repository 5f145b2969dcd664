/// Why codec bytes are unusable: the structure, the error, and the place.
public struct CodecError: Error, Sendable, Hashable, CustomStringConvertible {
  /// What kind of error it is.
  public enum Code: Sendable, Hashable {
    /// The bytes end before the structure does.
    case truncated
    /// A field has a value that the specification forbids.
    case invalid
    /// Valid, but not supported here.
    case unsupported
  }

  /// What kind of error it is.
  public var code: Code
  /// One line: the structure, the field, its value.
  public var reason: String
  /// Offset from the start of the parsed bytes. Nil if an offset means nothing.
  public var offset: Int?

  package init(_ code: Code, _ reason: String, offset: Int? = nil) {
    self.code = code
    self.reason = reason
    self.offset = offset
  }

  /// The reason, and the offset if there is one.
  public var description: String {
    offset.map { "\(reason) (at byte \($0))" } ?? reason
  }
}
