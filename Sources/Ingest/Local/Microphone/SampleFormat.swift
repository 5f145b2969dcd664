internal import CALSA
internal import CLibAV
internal import LibAV

/// A sample format of microphones, and the format it is converted to.
enum SampleFormat: CaseIterable, Sendable {
  case float32, integer32
  /// 24 bits in three bytes: the only format of many USB interfaces.
  case packed24
  case integer16, unsigned8

  /// ALSA's format.
  var device: snd_pcm_format_t {
    switch self {
    case .float32: SND_PCM_FORMAT_FLOAT_LE
    case .integer32: SND_PCM_FORMAT_S32_LE
    case .packed24: SND_PCM_FORMAT_S24_3LE
    case .integer16: SND_PCM_FORMAT_S16_LE
    case .unsigned8: SND_PCM_FORMAT_U8
    }
  }

  /// libswresample's input format. Packed samples are widened for it.
  var converted: AVSampleFormat {
    switch self {
    case .float32: AV_SAMPLE_FMT_FLT
    case .integer32, .packed24: AV_SAMPLE_FMT_S32
    case .integer16: AV_SAMPLE_FMT_S16
    case .unsigned8: AV_SAMPLE_FMT_U8
    }
  }

  /// Bytes of one channel's sample at the device.
  var deviceBytes: Int { self == .packed24 ? 3 : Int(av_get_bytes_per_sample(converted)) }

  /// Converts samples of three bytes, lowest first, to four bytes with the same loudness. Incomplete samples are
  /// ignored.
  ///
  /// - Parameter wide: room for four bytes per sample.
  static func widen(_ packed: UnsafeRawBufferPointer, into wide: UnsafeMutableRawBufferPointer) {
    for number in 0..<min(packed.count / 3, wide.count / 4) {
      let low = UInt32(packed[3 * number]) << 8
      let sample = low | UInt32(packed[3 * number + 1]) << 16 | UInt32(packed[3 * number + 2]) << 24
      wide.storeBytes(of: sample.littleEndian, toByteOffset: 4 * number, as: UInt32.self)
    }
  }
}
