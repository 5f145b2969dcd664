/// Why codec bytes are not usable: what was read, what is wrong with it, and where.
package struct CodecError: Error, Sendable, Hashable, CustomStringConvertible {
  package enum Code: Sendable, Hashable {
    /// The bytes end before the structure does.
    case truncated
    /// A field has a value that the specification forbids.
    case invalid
    /// Lawful, but not something weir carries.
    case unsupported
  }

  package var code: Code
  /// One line: the structure, the field, its value.
  package var reason: String
  /// Bytes from the start of what was parsed; nil where an offset says nothing.
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
