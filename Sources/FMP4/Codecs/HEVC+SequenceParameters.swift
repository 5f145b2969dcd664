extension HEVC {
  /// Fields of a sequence parameter set that weir needs (ITU-T H.265 §7.3.2.2, §E.2.1).
  struct SequenceParameters: Sendable {
    enum TemporalNesting: Sendable {
      case nested
      case free
    }

    let number: UInt32
    /// The twelve bytes of general profile, tier, constraints and level. The record repeats them.
    let profileTierLevel: [UInt8]
    /// 1 to 7.
    let temporalLayers: UInt8
    let temporalNesting: TemporalNesting
    /// `min_spatial_segmentation_idc`, 0 to 4095. 0 means unknown.
    let minimumSpatialSegmentation: UInt16
    let format: VideoFormat

    /// `nalUnit` begins with its header of two bytes.
    init(_ nalUnit: [UInt8]) throws(CodecError) {
      var reader = BitReader(nalUnit: nalUnit, headerLength: 2)
      try reader.skip(4)  // sps_video_parameter_set_id
      let subLayers = try reader.bits(3)
      guard subLayers <= 6 else {
        throw CodecError(.invalid, "sps_max_sub_layers_minus1 is \(subLayers), at most 6 allowed", offset: 2)
      }
      temporalLayers = UInt8(truncatingIfNeeded: subLayers) &+ 1
      temporalNesting = try reader.flag() ? .nested : .free
      var general: [UInt8] = []
      for _ in 0..<12 { general.append(UInt8(truncatingIfNeeded: try reader.bits(8))) }
      profileTierLevel = general
      try Self.skipSubLayerLevels(&reader, count: subLayers)

      number = try reader.ue("sps_seq_parameter_set_id", max: 15)
      let chromaFormat = try reader.ue("chroma_format_idc", max: 3)
      let chroma = VideoFormat.Chroma(rawValue: UInt8(truncatingIfNeeded: chromaFormat)) ?? .yuv420
      let separatePlanes = chroma == .yuv444 ? try reader.flag() : false
      var width = Int64(try reader.ue("pic_width_in_luma_samples"))
      var height = Int64(try reader.ue("pic_height_in_luma_samples"))
      if try reader.flag() {
        let planar = chroma == .monochrome || separatePlanes
        let unitX: Int64 = planar || chroma == .yuv444 ? 1 : 2
        let unitY: Int64 = planar || chroma != .yuv420 ? 1 : 2
        let left = Int64(try reader.ue("conf_win_left_offset"))
        let right = Int64(try reader.ue("conf_win_right_offset"))
        let top = Int64(try reader.ue("conf_win_top_offset"))
        let bottom = Int64(try reader.ue("conf_win_bottom_offset"))
        width -= unitX * (left + right)
        height -= unitY * (top + bottom)
      }
      let lumaDepth = 8 &+ UInt8(truncatingIfNeeded: try reader.ue("bit_depth_luma_minus8", max: 7))
      let chromaDepth = 8 &+ UInt8(truncatingIfNeeded: try reader.ue("bit_depth_chroma_minus8", max: 7))
      let orderCountBits = Int(try reader.ue("log2_max_pic_order_cnt_lsb_minus4", max: 12)) + 4
      let orderings = try reader.flag() ? subLayers &+ 1 : 1
      var reorderDepth = 0
      for _ in 0..<orderings {
        _ = try reader.ue("sps_max_dec_pic_buffering_minus1", max: 15)
        // The last entry is for the highest layer, which is the one that is played.
        reorderDepth = Int(try reader.ue("sps_max_num_reorder_pics", max: 15))
        _ = try reader.ue("sps_max_latency_increase_plus1")
      }
      for name: StaticString in [
        "log2_min_luma_coding_block_size_minus3", "log2_diff_max_min_luma_coding_block_size",
        "log2_min_luma_transform_block_size_minus2", "log2_diff_max_min_luma_transform_block_size",
        "max_transform_hierarchy_depth_inter", "max_transform_hierarchy_depth_intra",
      ] {
        _ = try reader.ue(name, max: 31)
      }
      if try reader.flag(), try reader.flag() { try Self.skipScalingLists(&reader) }
      try reader.skip(2)  // amp_enabled_flag, sample_adaptive_offset_enabled_flag
      if try reader.flag() {
        try reader.skip(8)
        _ = try reader.ue("log2_min_pcm_luma_coding_block_size_minus3", max: 31)
        _ = try reader.ue("log2_diff_max_min_pcm_luma_coding_block_size", max: 31)
        try reader.skip(1)
      }
      try Self.skipReferencePictureSets(&reader)
      if try reader.flag() {
        for _ in 0..<(try reader.ue("num_long_term_ref_pics_sps", max: 32)) { try reader.skip(orderCountBits + 1) }
      }
      try reader.skip(2)  // sps_temporal_mvp_enabled_flag, strong_intra_smoothing_enabled_flag

      var usability = Usability()
      // Some encoders cut it short. Its values are useful, but no decoder needs them.
      if try reader.flag() { try? usability.read(&reader, subLayers: subLayers) }
      minimumSpatialSegmentation = usability.segmentation
      format = try VideoFormat(
        width: width, height: height, sampleAspectRatio: usability.common.sampleAspectRatio,
        color: usability.common.color, chroma: chroma, lumaBitDepth: lumaDepth, chromaBitDepth: chromaDepth,
        frameRate: usability.rate, reorderDepth: reorderDepth)
    }

    /// `vui_parameters`, §E.2.1, as far as they are readable.
    private struct Usability {
      var common = VideoUsability()
      var rate: FrameRate?
      var segmentation: UInt16 = 0

      mutating func read(_ reader: inout BitReader, subLayers: UInt32) throws(CodecError) {
        common = try VideoUsability(&reader)
        try reader.skip(3)  // neutral_chroma_indication_flag, field_seq_flag, frame_field_info_present_flag
        if try reader.flag() {
          for _ in 0..<4 { _ = try reader.ue("default display window") }
        }
        if try reader.flag() {
          let tick = try reader.bits(32)
          let scale = try reader.bits(32)
          rate = FrameRate(numerator: scale, denominator: tick)
          if try reader.flag() { _ = try reader.ue("vui_num_ticks_poc_diff_one_minus1") }
          if try reader.flag() { try SequenceParameters.skipReferenceDecoder(&reader, subLayers: subLayers) }
        }
        if try reader.flag() {
          try reader.skip(3)
          segmentation = UInt16(truncatingIfNeeded: try reader.ue("min_spatial_segmentation_idc", max: 4095))
        }
      }
    }

    /// Codec string after "hvc1." (ISO/IEC 14496-15 Annex E.3).
    var profileText: String {
      let bytes = profileTierLevel
      guard bytes.count == 12 else { return "" }
      let space = ["", "A", "B", "C"][Int(bytes[0] >> 6)]
      var compatibility: UInt32 = 0
      for byte in bytes[1...4] { compatibility = compatibility << 8 | UInt32(byte) }
      var reversed: UInt32 = 0
      for bit in 0..<32 where compatibility >> UInt32(bit) & 1 != 0 { reversed |= 1 << UInt32(31 - bit) }
      var text = "\(space)\(bytes[0] & 31).\(String(reversed, radix: 16, uppercase: true))"
      text += ".\(bytes[0] & 32 == 0 ? "L" : "H")\(bytes[11])"
      var constraints = bytes[5...10]
      while constraints.last == 0 { constraints.removeLast() }
      for byte in constraints { text += ".\(String(byte, radix: 16, uppercase: true))" }
      return text
    }
  }
}

extension HEVC.SequenceParameters {
  /// The sub-layers' part of `profile_tier_level`, §7.3.3.
  private static func skipSubLayerLevels(_ reader: inout BitReader, count: UInt32) throws(CodecError) {
    guard count > 0 else { return }
    var sizes: [Int] = []
    for _ in 0..<count {
      let profile = try reader.flag()
      let level = try reader.flag()
      sizes.append((profile ? 88 : 0) + (level ? 8 : 0))
    }
    try reader.skip(2 * (8 - Int(count)))
    for size in sizes { try reader.skip(size) }
  }

  /// `scaling_list_data`, §7.3.4.
  private static func skipScalingLists(_ reader: inout BitReader) throws(CodecError) {
    for size in 0..<4 {
      for _ in stride(from: 0, to: 6, by: size == 3 ? 3 : 1) {
        guard try reader.flag() else {
          _ = try reader.ue("scaling_list_pred_matrix_id_delta", max: 5)
          continue
        }
        if size > 1 { try reader.se("scaling_list_dc_coef_minus8") }
        for _ in 0..<min(64, 1 << (4 + (size << 1))) { try reader.se("scaling_list_delta_coef") }
      }
    }
  }

  /// The `st_ref_pic_set`s, §7.3.7. Each may be coded as a difference from the one before, so the counts are kept.
  private static func skipReferencePictureSets(_ reader: inout BitReader) throws(CodecError) {
    let sets = try reader.ue("num_short_term_ref_pic_sets", max: 64)
    var previous: UInt32 = 0
    for index in 0..<sets {
      if index > 0, try reader.flag() {
        try reader.skip(1)  // delta_rps_sign
        _ = try reader.ue("abs_delta_rps_minus1", max: 32_767)
        var count: UInt32 = 0
        for _ in 0...previous {
          let used = try reader.flag()
          if used {
            count &+= 1
          } else if try reader.flag() {
            count &+= 1
          }
        }
        previous = min(count, 16)
      } else {
        let negative = try reader.ue("num_negative_pics", max: 16)
        let positive = try reader.ue("num_positive_pics", max: 16)
        for _ in 0..<(negative &+ positive) {
          _ = try reader.ue("delta_poc_minus1", max: 32_767)
          try reader.skip(1)
        }
        previous = negative &+ positive
      }
    }
  }

  /// `hrd_parameters` with common information, §E.2.2.
  fileprivate static func skipReferenceDecoder(_ reader: inout BitReader, subLayers: UInt32) throws(CodecError) {
    let nal = try reader.flag()
    let vcl = try reader.flag()
    var subPicture = false
    if nal || vcl {
      subPicture = try reader.flag()
      if subPicture { try reader.skip(19) }
      try reader.skip(8)
      if subPicture { try reader.skip(4) }
      try reader.skip(15)
    }
    for _ in 0...subLayers {
      var fixed = try reader.flag()
      if !fixed { fixed = try reader.flag() }
      var lowDelay = false
      if fixed { _ = try reader.ue("elemental_duration_in_tc_minus1", max: 2047) } else { lowDelay = try reader.flag() }
      let buffers = lowDelay ? 0 : try reader.ue("cpb_cnt_minus1", max: 31)
      for _ in 0..<((nal ? 1 : 0) + (vcl ? 1 : 0)) {
        for _ in 0...buffers {
          _ = try reader.ue("bit_rate_value_minus1")
          _ = try reader.ue("cpb_size_value_minus1")
          if subPicture {
            _ = try reader.ue("cpb_size_du_value_minus1")
            _ = try reader.ue("bit_rate_du_value_minus1")
          }
          try reader.skip(1)
        }
      }
    }
  }
}
