/// Why bytes are not valid boxes: the error, the box, and the place.
public struct BoxError: Error, Sendable, Hashable, CustomStringConvertible {
  /// What is wrong.
  public enum Code: Sendable, Hashable {
    /// Zeros at the place where a box should begin: nothing was written there.
    case blank
    /// The file does not begin with a box of an MP4.
    case foreign
    /// Its size is smaller than its header.
    case small(size: UInt64)
    /// It extends beyond its container, which has `room` bytes for it.
    case cut(size: UInt64, room: UInt64)
    /// Its bytes end within its header or within a field.
    case truncated
    /// It has more bytes than are read of one box.
    case large(size: UInt64)
    /// A required box is missing in it.
    case missing(FourCC)
    /// Its fields contradict each other or other boxes.
    case invalid
    /// Media precedes the first `moov`.
    case unfinished
    /// Its codec configuration is unknown or invalid.
    case codec(CodecError)
  }

  /// What is wrong.
  public let code: Code
  /// Box types from the outermost box to the box with the error.
  public let path: [FourCC]
  /// Offset of that box or field in the file, in bytes.
  public let offset: UInt64

  package init(_ code: Code, _ path: [FourCC], at offset: UInt64) {
    self.code = code
    self.path = path
    self.offset = offset
  }

  /// One line: `moov/trak at byte 532: it has no tkhd`.
  public var description: String {
    let name = path.map(\.description).joined(separator: "/")
    return (name.isEmpty ? "" : "\(name) ") + "at byte \(offset): \(reason)"
  }

  private var reason: String {
    switch code {
    case .blank: "there are zeros where a box should begin"
    case .foreign: "no MP4 box begins there"
    case .small(let size): "it states a size of \(size) bytes, less than its header"
    case .cut(let size, let room): "it states a size of \(size) bytes, but only \(room) are left"
    case .truncated: "it ends within a field"
    case .large(let size): "it has \(size) bytes, more than the limit for one box"
    case .missing(let type): "it has no \(type)"
    case .invalid: "its fields contradict each other or other boxes"
    case .unfinished: "there is no moov before it"
    case .codec(let error): "\(error)"
    }
  }
}
