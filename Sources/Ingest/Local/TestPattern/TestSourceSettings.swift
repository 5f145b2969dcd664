package import FMP4
internal import LibAV

/// Settings of the test source. The defaults are the demo's.
package struct TestSourceSettings: Sendable, Hashable {
  /// Pixels; even. The width sets the size of everything in the frame (`unit`).
  package var width: Int
  /// Pixels; even. At least 44/80 of the width, so that everything fits.
  package var height: Int
  /// Turns the frames before they are encoded.
  package var rotation = Rotation.none
  package var frameRate: FrameRate
  /// Frames from one key frame to the next.
  package var keyFrameInterval: Int
  /// Most B-frames in a row; 0 for the least delay.
  package var bFrames: Int
  /// Bits per second.
  package var videoBitRate: Int
  /// Hz; also the audio's timescale.
  package var sampleRate: Int
  /// Bits per second.
  package var audioBitRate: Int
  package var pacing: Pacing
  /// The source ends after this many frames. Nil: never.
  package var frameLimit: Int64?

  /// Frames per second as timescale / frameDuration: 30000/1000, 30000/1001, 25000/1000.
  package struct FrameRate: Sendable, Hashable {
    /// Ticks per second; also the video track's timescale.
    package var timescale: UInt32
    /// Ticks per frame.
    package var frameDuration: UInt32

    package init(timescale: UInt32, frameDuration: UInt32) {
      precondition(timescale > 0 && frameDuration > 0, "both numbers of a frame rate are positive")
      self.timescale = timescale
      self.frameDuration = frameDuration
    }
  }

  /// How fast frames are made.
  package enum Pacing: Sendable, Hashable {
    /// Each at its time on the clock.
    case realTime
    /// As fast as possible, with times as if the clock kept up. For tests.
    case unpaced
  }

  /// Pixels: everything in a frame of this width is laid out on a grid of such units, 80 across.
  static func unit(width: Int) -> Int { width / 80 & ~1 }

  package init(
    width: Int = 1280, height: Int = 720, frameRate: FrameRate = FrameRate(timescale: 30000, frameDuration: 1000),
    keyFrameInterval: Int = 60, bFrames: Int = 0, videoBitRate: Int = 2_000_000, sampleRate: Int = 48000,
    audioBitRate: Int = 96000, pacing: Pacing = .realTime, frameLimit: Int64? = nil
  ) {
    precondition(
      width >= 160 && width % 2 == 0 && height % 2 == 0, "a test pattern is at least 160 wide, and its sides are even")
    precondition(height >= Self.unit(width: width) * 44, "a test pattern of this width needs more height")
    precondition(
      keyFrameInterval > 0 && bFrames >= 0, "the key frame interval is positive, the number of B-frames not negative")
    self.width = width
    self.height = height
    self.frameRate = frameRate
    self.keyFrameInterval = keyFrameInterval
    self.bFrames = bFrames
    self.videoBitRate = videoBitRate
    self.sampleRate = sampleRate
    self.audioBitRate = audioBitRate
    self.pacing = pacing
    self.frameLimit = frameLimit
  }

  /// The demo's settings for a server with segments of this duration: each begins with a key frame.
  package static func demo(segmentDuration: Duration) -> TestSourceSettings {
    var settings = TestSourceSettings()
    let (seconds, attoseconds) = segmentDuration.components
    let rate = Double(settings.frameRate.timescale) / Double(settings.frameRate.frameDuration)
    let frames = (Double(seconds) + Double(attoseconds) / 1e18) * rate
    settings.keyFrameInterval = Int(min(max(frames.rounded(), 1), 100_000))
    return settings
  }
}

extension TestSourceSettings {
  /// Time from one key frame to the next.
  var keyFrameTime: MediaTime {
    MediaTime(ticks: Int64(keyFrameInterval) * Int64(frameRate.frameDuration), timescale: frameRate.timescale)
  }

  /// Format for the encoder. Its times count frames.
  var format: VideoEncoder.Format {
    guard let rate = FMP4.FrameRate(numerator: frameRate.timescale, denominator: frameRate.frameDuration) else {
      preconditionFailure("both numbers of a frame rate are positive")
    }
    return VideoEncoder.Format(
      width: rotation.swapsSides ? height : width, height: rotation.swapsSides ? width : height, rate: rate,
      timescale: frameRate.timescale, ticks: frameRate.frameDuration)
  }

  /// One thread, so that equal frames give equal bytes on every run.
  var encoding: VideoEncoding {
    let interval = keyFrameTime.nanoseconds / 1_000_000
    return VideoEncoding(
      encoder: .x264, bitRate: videoBitRate, keyFrameMilliseconds: Int(interval), bFrames: bFrames, threads: 1)
  }
}
