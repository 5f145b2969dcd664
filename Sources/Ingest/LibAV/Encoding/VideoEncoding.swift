package import FMP4

/// How pictures are coded: the words of the field, translated for each encoder. Cameras and renditions share it. The
/// defaults are for little delay.
package struct VideoEncoding: Sendable, Hashable {
  /// How bits are spent.
  package enum RateControl: Sendable, Hashable {
    /// The bit rate is kept within each second.
    case constant
    /// Half as much more is allowed for a while.
    case variable
    /// An even quality (libx264's CRF, 0…51, smaller is better), never above the bit rate.
    case quality(Int)
  }

  /// How much work an encoder takes for each bit, in libx264's words; other encoders' own steps are counted like them.
  package enum Preset: String, Sendable, Hashable, CaseIterable {
    case ultrafast, superfast, veryfast, faster, fast, medium, slow, slower, veryslow
  }

  /// What an encoder is to favour.
  package enum Tune: String, Sendable, Hashable, CaseIterable {
    /// No picture waits for others.
    case zerolatency
    case film, animation, grain, stillimage, fastdecode
    /// Nothing in particular.
    case none
  }

  package enum Profile: String, Sendable, Hashable, CaseIterable {
    case baseline, main, high
  }

  package var coding: CodecID
  /// Nil for the best that the machine has.
  package var encoder: VideoEncoderName?
  /// Bits a second; nil for what the picture's size and rate need.
  package var bitRate: Int?
  package var rateControl: RateControl
  package var preset: Preset
  package var tune: Tune
  /// Nil for the encoder's own choice.
  package var profile: Profile?
  /// From one key frame to the next, in milliseconds.
  package var keyFrameMilliseconds: Int
  /// Most B-frames in a row; each delays every picture by one.
  package var bFrames: Int
  /// Threads of the encoder; 0 for as many as it likes. With one, equal pictures give equal bytes on every run.
  package var threads: Int

  package init(
    coding: CodecID = .h264, encoder: VideoEncoderName? = nil, bitRate: Int? = nil,
    rateControl: RateControl = .constant, preset: Preset = .veryfast, tune: Tune = .zerolatency,
    profile: Profile? = nil, keyFrameMilliseconds: Int = 2000, bFrames: Int = 0, threads: Int = 0
  ) {
    self.coding = encoder?.coding ?? coding
    self.encoder = encoder
    self.bitRate = bitRate
    self.rateControl = rateControl
    self.preset = preset
    self.tune = tune
    self.profile = profile
    self.keyFrameMilliseconds = keyFrameMilliseconds
    self.bFrames = bFrames
    self.threads = threads
  }

  /// The bit rate as set, or one that suits natural pictures of this size and rate: 0.1 bits a pixel (HEVC and AV1 need
  /// 0.07), within 200 kbit/s to 20 Mbit/s.
  package func bitRate(width: Int, height: Int, framesPerSecond: Double) -> Int {
    let bitsPerPixel = coding == .h264 ? 0.1 : 0.07
    return bitRate ?? Int(min(max(Double(width * height) * framesPerSecond * bitsPerPixel, 200_000), 20_000_000))
  }

  /// Why an encoder cannot have these settings; nil where it can.
  package var contradiction: String? {
    if let profile, coding != .h264, profile != .main {
      return "the profile \(profile.rawValue) belongs to H.264; \(coding.rawValue) has main"
    }
    if profile == .baseline, bFrames > 0 { return "the profile baseline has no B-frames" }
    if coding == .hevc, [.film, .stillimage].contains(tune) {
      return "the tune \(tune.rawValue) belongs to H.264"
    }
    if coding == .av1, [.film, .animation, .grain, .stillimage].contains(tune) {
      return "the tune \(tune.rawValue) belongs to H.264 and HEVC"
    }
    if let encoder, encoder.coding != coding {
      return "\(encoder.rawValue) codes \(encoder.coding.rawValue), not \(coding.rawValue)"
    }
    return nil
  }
}
