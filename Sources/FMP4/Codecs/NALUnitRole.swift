/// How a NAL unit takes part in a coded frame.
package enum NALUnitRole: Sendable {
  /// The first slice of a frame.
  case first
  case slice
  /// It stands in front of the slices of its frame.
  case leading
  case other
}
