internal import CLibAV
internal import FMP4

/// An encoder in the list of `weir devices`.
package struct EncoderListing: Sendable, Hashable {
  package var name: String
  /// `h264`, `hevc`, `av1`, `aac` or `opus`.
  package var coding: String
  package var isHardware: Bool
  /// Why it does not work on this machine. Nil if it works.
  package var problem: String?
}

/// The encoders that weir can use, after a test of each.
package enum EncoderCatalogue {
  package static func list() -> [EncoderListing] {
    let video = VideoEncoderName.allCases.map { name in
      EncoderListing(
        name: name.rawValue, coding: name.coding.rawValue, isHardware: name.isHardware, problem: problem(of: name))
    }
    let audio = CodecID.allCases.compactMap { coding in
      AudioEncoding.all[coding].map { encoding in
        EncoderListing(
          name: encoding.encoder, coding: coding.rawValue, isHardware: false,
          problem: trial { _ = try AudioEncoder(coding, sampleRate: 48_000, bitRate: 128_000) })
      }
    }
    return video + audio
  }

  /// Why an encoder does not work on this machine. Nil if it works.
  package static func problem(of name: VideoEncoderName) -> String? {
    guard let rate = FrameRate(numerator: 30, denominator: 1) else { return nil }
    let format = VideoEncoder.Format(width: 640, height: 360, rate: rate, timescale: 30)
    return trial { _ = try VideoEncoder(name, format, VideoEncoding(encoder: name, threads: 1)) }
  }

  private static func trial(_ open: () throws -> Void) -> String? {
    do {
      try open()
      return nil
    } catch {
      return "\(error)"
    }
  }
}
