extension H264 {
  /// Fields of a sequence parameter set that weir needs (ITU-T H.264 §7.3.2.1.1, §E.1.1).
  struct SequenceParameters {
    let profile: UInt8
    let compatibility: UInt8
    let level: UInt8
    let format: VideoFormat
    /// Nil if the set allows frames only.
    let fieldSyntax: FieldSyntax?

    /// Whether the set and the record state chroma format and bit depth.
    static func isHigh(profile: UInt8) -> Bool {
      switch profile {
      case 100, 110, 122, 244, 44, 83, 86, 118, 128, 134, 135, 138, 139: true
      default: false
      }
    }

    /// `nalUnit` begins with its header byte.
    init(_ nalUnit: [UInt8]) throws(CodecError) {
      var reader = BitReader(nalUnit: nalUnit, headerLength: 1)
      profile = UInt8(truncatingIfNeeded: try reader.bits(8))
      compatibility = UInt8(truncatingIfNeeded: try reader.bits(8))
      level = UInt8(truncatingIfNeeded: try reader.bits(8))
      _ = try reader.ue("seq_parameter_set_id", max: 31)

      var chroma = VideoFormat.Chroma.yuv420
      var separatePlanes = false
      var lumaDepth: UInt8 = 8
      var chromaDepth: UInt8 = 8
      if Self.isHigh(profile: profile) {
        let format = try reader.ue("chroma_format_idc", max: 3)
        chroma = VideoFormat.Chroma(rawValue: UInt8(truncatingIfNeeded: format)) ?? .yuv420
        if chroma == .yuv444 { separatePlanes = try reader.flag() }
        lumaDepth = 8 &+ UInt8(truncatingIfNeeded: try reader.ue("bit_depth_luma_minus8", max: 6))
        chromaDepth = 8 &+ UInt8(truncatingIfNeeded: try reader.ue("bit_depth_chroma_minus8", max: 6))
        try reader.skip(1)  // qpprime_y_zero_transform_bypass_flag
        if try reader.flag() { try Self.skipScalingMatrix(&reader, lists: chroma == .yuv444 ? 12 : 8) }
      }

      let frameNumberBits = 4 &+ Int(try reader.ue("log2_max_frame_num_minus4", max: 12))
      let orderCountType = try reader.ue("pic_order_cnt_type", max: 2)
      if orderCountType == 0 {
        _ = try reader.ue("log2_max_pic_order_cnt_lsb_minus4", max: 12)
      } else if orderCountType == 1 {
        try reader.skip(1)
        try reader.se("offset_for_non_ref_pic")
        try reader.se("offset_for_top_to_bottom_field")
        for _ in 0..<(try reader.ue("num_ref_frames_in_pic_order_cnt_cycle", max: 255)) {
          try reader.se("offset_for_ref_frame")
        }
      }
      _ = try reader.ue("max_num_ref_frames", max: 16)
      try reader.skip(1)  // gaps_in_frame_num_value_allowed_flag

      let columns = Int64(try reader.ue("pic_width_in_mbs_minus1")) + 1
      let rows = Int64(try reader.ue("pic_height_in_map_units_minus1")) + 1
      let frameOnly = try reader.flag()
      fieldSyntax =
        frameOnly ? nil : FieldSyntax(frameNumberBits: frameNumberBits, hasSeparatePlanes: separatePlanes)
      if !frameOnly { try reader.skip(1) }  // mb_adaptive_frame_field_flag
      try reader.skip(1)  // direct_8x8_inference_flag
      var width = columns * 16
      var height = rows * (frameOnly ? 16 : 32)
      if try reader.flag() {
        let planar = chroma == .monochrome || separatePlanes
        let unitX: Int64 = planar || chroma == .yuv444 ? 1 : 2
        let unitY: Int64 = (planar || chroma != .yuv420 ? 1 : 2) * (frameOnly ? 1 : 2)
        let left = Int64(try reader.ue("frame_crop_left_offset"))
        let right = Int64(try reader.ue("frame_crop_right_offset"))
        let top = Int64(try reader.ue("frame_crop_top_offset"))
        let bottom = Int64(try reader.ue("frame_crop_bottom_offset"))
        width -= unitX * (left + right)
        height -= unitY * (top + bottom)
      }

      var usability = Usability()
      // Order counts of type 2 require output order to equal decoding order (§8.2.1.3). The baseline profile has no B
      // slices.
      if orderCountType == 2 || profile == 66 { usability.reorderDepth = 0 }
      // Some encoders cut it short. Its values are useful, but no decoder needs them.
      if try reader.flag() { try? usability.read(&reader) }
      format = try VideoFormat(
        width: width, height: height, sampleAspectRatio: usability.common.sampleAspectRatio,
        color: usability.common.color, chroma: chroma, lumaBitDepth: lumaDepth, chromaBitDepth: chromaDepth,
        frameRate: usability.rate, cadence: usability.cadence, reorderDepth: usability.reorderDepth)
    }

    /// `vui_parameters`, §E.1.1, as far as they are readable.
    private struct Usability {
      var common = VideoUsability()
      var rate: FrameRate?
      var cadence = VideoFormat.Cadence.variable
      var reorderDepth: Int?

      mutating func read(_ reader: inout BitReader) throws(CodecError) {
        common = try VideoUsability(&reader)
        if try reader.flag() {
          let tick = try reader.bits(32)
          let scale = try reader.bits(32)
          cadence = try reader.flag() ? .fixed : .variable
          // A tick is the duration of a field, also in progressive video (§E.2.1).
          if tick <= UInt32.max / 2 { rate = FrameRate(numerator: scale, denominator: tick &* 2) }
        }
        let nal = try reader.flag()
        if nal { try skipReferenceDecoder(&reader) }
        let vcl = try reader.flag()
        if vcl { try skipReferenceDecoder(&reader) }
        if nal || vcl { try reader.skip(1) }  // low_delay_hrd_flag
        try reader.skip(1)  // pic_struct_present_flag
        if try reader.flag() {
          try reader.skip(1)
          _ = try reader.ue("max_bytes_per_pic_denom")
          _ = try reader.ue("max_bits_per_mb_denom")
          _ = try reader.ue("log2_max_mv_length_horizontal")
          _ = try reader.ue("log2_max_mv_length_vertical")
          reorderDepth = Int(try reader.ue("max_num_reorder_frames", max: 16))
        }
      }

      /// `hrd_parameters`, §E.1.2.
      private func skipReferenceDecoder(_ reader: inout BitReader) throws(CodecError) {
        let count = try reader.ue("cpb_cnt_minus1", max: 31)
        try reader.skip(8)
        for _ in 0...count {
          _ = try reader.ue("bit_rate_value_minus1")
          _ = try reader.ue("cpb_size_value_minus1")
          try reader.skip(1)
        }
        try reader.skip(20)
      }
    }

    /// §7.3.2.1.1.1.
    private static func skipScalingMatrix(_ reader: inout BitReader, lists: Int) throws(CodecError) {
      for list in 0..<lists where try reader.flag() {
        var last: Int32 = 8
        var next: Int32 = 8
        for _ in 0..<(list < 6 ? 16 : 64) {
          if next != 0 { next = (last &+ (try reader.se("delta_scale"))) & 255 }
          if next != 0 { last = next }
        }
      }
    }
  }
}
