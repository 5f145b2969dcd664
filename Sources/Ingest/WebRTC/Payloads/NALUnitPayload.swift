internal import NIOCore

/// How packets of a codec carry its NAL units: one by one, several in a packet, and in fragments where they are long.
protocol NALUnitPayload {
  /// Bytes of a unit's header. A payload begins with one, too, whose type says what the payload is.
  static var headerBytes: Int { get }

  // MARK: what comes

  /// What a payload is, by its first byte.
  static func form(_ header: UInt8) -> NALUnitForm
  /// What a frame has of a unit, by the first byte of its header.
  static func use(_ header: UInt8) -> NALUnitUse
  /// Whether a payload can be the first one of a frame: it begins its first slice, or no slice comes first.
  static func begins(_ payload: ByteBuffer) -> Bool
  /// The first byte of a unit's header, of that of its fragments and their own header.
  static func unitHeader(_ header: UInt8, fragment: UInt8) -> UInt8

  // MARK: what is sent

  /// The header of a payload with these units.
  static func aggregationHeader(_ units: [[UInt8]]) -> [UInt8]
  /// The first byte of a payload with a fragment, and the fragment's own header without its marks, of the first byte of the
  /// unit's header.
  static func fragmentHeaders(_ header: UInt8) -> (payload: UInt8, fragment: UInt8)
}

/// What a payload has.
enum NALUnitForm { case unit, aggregation, fragment, unknown }

/// What becomes of a NAL unit on its way into a frame.
enum NALUnitUse {
  /// A slice at which decoding can start.
  case key
  case slice
  case parameterSet
  /// Samples have none of its kind.
  case leftOut
  case other
  /// No frame has one of its kind.
  case unknown
}
