/// First part of the video usability information, which is the same in H.264 (§E.1.1) and HEVC (§E.2.1).
struct VideoUsability {
  var sampleAspectRatio = SampleAspectRatio.square
  var color: ColorDescription?

  init() {}

  /// Reads up to and including the chroma sample locations.
  init(_ reader: inout BitReader) throws(CodecError) {
    if try reader.flag() {
      let index = try reader.bits(8)
      if index == 255 {
        let horizontal = try reader.bits(16)
        let vertical = try reader.bits(16)
        sampleAspectRatio = SampleAspectRatio(
          UInt16(truncatingIfNeeded: horizontal), UInt16(truncatingIfNeeded: vertical))
      } else {
        sampleAspectRatio = SampleAspectRatio(tableIndex: index)
      }
    }
    if try reader.flag() { try reader.skip(1) }  // overscan
    if try reader.flag() {
      try reader.skip(3)  // video_format
      let range: ColorDescription.Range = try reader.flag() ? .full : .limited
      if try reader.flag() {
        color = ColorDescription(
          primaries: UInt8(truncatingIfNeeded: try reader.bits(8)),
          transfer: UInt8(truncatingIfNeeded: try reader.bits(8)),
          matrix: UInt8(truncatingIfNeeded: try reader.bits(8)), range: range)
      } else if range == .full {
        color = ColorDescription(primaries: 2, transfer: 2, matrix: 2, range: .full)
      }
    }
    if try reader.flag() {
      _ = try reader.ue("chroma_sample_loc_type_top_field", max: 5)
      _ = try reader.ue("chroma_sample_loc_type_bottom_field", max: 5)
    }
  }
}
