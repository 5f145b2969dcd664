/// Why codec bytes are unusable: the structure, the error, and the place.
package struct CodecError: Error, Sendable, Hashable, CustomStringConvertible {
  package enum Code: Sendable, Hashable {
    /// The bytes end before the structure does.
    case truncated
    /// A field has a value that the specification forbids.
    case invalid
    /// Valid, but not supported by weir.
    case unsupported
  }

  package var code: Code
  /// One line: the structure, the field, its value.
  package var reason: String
  /// Offset from the start of the parsed bytes. Nil if an offset means nothing.
  package var offset: Int?

  package init(_ code: Code, _ reason: String, offset: Int? = nil) {
    self.code = code
    self.reason = reason
    self.offset = offset
  }

  package var description: String {
    offset.map { "\(reason) (at byte \($0))" } ?? reason
  }
}
