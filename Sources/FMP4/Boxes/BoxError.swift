/// Why bytes are not the boxes that they should be: what is wrong, with which box, and where.
package struct BoxError: Error, Sendable, Hashable, CustomStringConvertible {
  package enum Code: Sendable, Hashable {
    /// Zeros stand where a box should begin: nothing was written there.
    case blank
    /// What a file begins with is no box of an MP4.
    case foreign
    /// Its size is less than that of its header.
    case small(size: UInt64)
    /// It reaches beyond what it lies in, which has `room` bytes for it.
    case cut(size: UInt64, room: UInt64)
    /// Its bytes end within its header or a field.
    case truncated
    /// It has more bytes than are read at once.
    case large(size: UInt64)
    /// A box that belongs into it is not there.
    case missing(FourCC)
    /// Its fields contradict one another, or the other boxes.
    case invalid
    /// Media comes before any `moov`.
    case unfinished
    /// The configuration in it is not one that is known.
    case codec(CodecError)
  }

  package let code: Code
  /// Types from the outermost box to the one that is meant.
  package let path: [FourCC]
  /// Where that box begins, or the field that is meant: bytes from the start of the file.
  package let offset: UInt64

  package init(_ code: Code, _ path: [FourCC], at offset: UInt64) {
    self.code = code
    self.path = path
    self.offset = offset
  }

  /// One line: `moov/trak at byte 532: it has no tkhd`.
  package var description: String {
    let name = path.map(\.description).joined(separator: "/")
    return (name.isEmpty ? "" : "\(name) ") + "at byte \(offset): \(reason)"
  }

  private var reason: String {
    switch code {
    case .blank: "there are zeros where a box should begin"
    case .foreign: "no box of an MP4 begins there"
    case .small(let size): "it is to have \(size) bytes, fewer than its header"
    case .cut(let size, let room): "it is to have \(size) bytes, of which \(room) are there"
    case .truncated: "it ends within a field"
    case .large(let size): "it has \(size) bytes, more than are read of one box"
    case .missing(let type): "it has no \(type)"
    case .invalid: "what it says does not fit together"
    case .unfinished: "there is no moov before it"
    case .codec(let error): "\(error)"
    }
  }
}
