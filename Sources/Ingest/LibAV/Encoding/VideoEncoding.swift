package import FMP4

/// Video encoding settings in common terms, translated for each encoder. Used for cameras and renditions. The defaults
/// give low delay.
package struct VideoEncoding: Sendable, Hashable {
  /// How bits are spent.
  package enum RateControl: Sendable, Hashable {
    /// The bit rate is kept within each second.
    case constant
    /// Up to one and a half times the bit rate for a while.
    case variable
    /// Constant quality (libx264's CRF, 0 to 51; lower is better), never above the bit rate.
    case quality(Int)
  }

  /// Encoder effort per bit, by libx264's names. Other encoders' steps are mapped to them.
  package enum Preset: String, Sendable, Hashable, CaseIterable {
    case ultrafast, superfast, veryfast, faster, fast, medium, slow, slower, veryslow
  }

  /// What an encoder favours.
  package enum Tune: String, Sendable, Hashable, CaseIterable {
    /// No frame waits for others.
    case zerolatency
    case film, animation, grain, stillimage, fastdecode
    /// Nothing in particular.
    case none
  }

  package enum Profile: String, Sendable, Hashable, CaseIterable {
    case baseline, main, high
  }

  package var coding: CodecID
  /// Nil: the best one on this machine.
  package var encoder: VideoEncoderName?
  /// Bits per second. Nil: a rate that suits frame size and frame rate.
  package var bitRate: Int?
  package var rateControl: RateControl
  package var preset: Preset
  package var tune: Tune
  /// Nil: the encoder's choice.
  package var profile: Profile?
  /// Distance of key frames in milliseconds.
  package var keyFrameMilliseconds: Int
  /// Most B-frames in a row. Each delays every frame by one.
  package var bFrames: Int
  /// Threads of the encoder; 0 for its own choice. With one thread, equal input gives equal bytes on every run.
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

  /// The configured bit rate, or one that suits natural video of this size and rate: 0.1 bits per pixel (HEVC and AV1:
  /// 0.07), within 200 kbit/s to 20 Mbit/s.
  package func bitRate(width: Int, height: Int, framesPerSecond: Double) -> Int {
    let bitsPerPixel = coding == .h264 ? 0.1 : 0.07
    return bitRate ?? Int(min(max(Double(width * height) * framesPerSecond * bitsPerPixel, 200_000), 20_000_000))
  }

  /// Why an encoder cannot have these settings. Nil if they are valid.
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
