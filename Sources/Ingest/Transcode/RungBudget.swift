internal import LibAV

/// Most bytes that a worker may output for a rung: the output of an encoder at that bit rate, with room to spare. It is
/// a bucket. Each frame adds its bytes, after the bucket has lost one frame's share of the bit rate. An encoder
/// distributes its bits by the frame rate that the source states, whatever the frame times are. So the limit counts
/// frames too. If frames come much faster than stated, the shares shrink, so media of a given duration has a bounded
/// size. A value type.
struct RungBudget: Sendable, Hashable {
  /// Size of the bucket, and so the most bytes of one frame.
  let capacity: Int
  /// Bytes of a frame in the long run.
  private let share: Int
  /// Ticks after the last frame from which a frame has its whole share.
  private let spacing: Int64
  private var level = 0

  /// - Parameters:
  ///   - bitRate: bits per second.
  ///   - macroblocks: of a frame; 0 for audio.
  ///   - frameDuration: ticks of a video or audio frame, as set in the encoder.
  ///   - timescale: ticks per second.
  init(bitRate: UInt32, macroblocks: Int, frameDuration: UInt32, timescale: UInt32) {
    let least = TranscodeLimits.leastFrameBytes + macroblocks * TranscodeLimits.leastMacroblockBytes
    let bytesPerSecond = Int(bitRate) / 8
    capacity =
      bytesPerSecond * TranscodeLimits.budgetSeconds + TranscodeLimits.budgetBytes
      + least * TranscodeLimits.budgetFrames
    let duration = min(max(frameDuration, 1), max(timescale, 1))
    share = bytesPerSecond * TranscodeLimits.budgetFactor * Int(duration) / Int(max(timescale, 1)) + least
    spacing = max(1, Int64(duration) / TranscodeLimits.budgetHaste)
  }

  /// Takes over the level of an earlier budget of the same rung.
  mutating func goOn(after other: RungBudget) { level = min(other.level, capacity) }

  /// Counts the next frame, `ticks` after the last one. False if it exceeds the budget.
  mutating func take(_ bytes: Int, after ticks: Int64) -> Bool {
    level = max(0, level - share * Int(min(max(ticks, 0), spacing)) / Int(spacing))
    guard bytes <= capacity - level else { return false }
    level += bytes
    return true
  }
}

extension TranscodePlan {
  /// Budget of a rung. Nil if there is no such rung.
  func budget(ofRung index: Int) -> RungBudget? {
    switch work {
    case .video(let configuration):
      guard configuration.rungs.indices.contains(index) else { return nil }
      let rung = configuration.rungs[index]
      // Without a stated rate the encoder assumes 30 frames per second.
      let told = configuration.frameDuration
      return RungBudget(
        bitRate: rung.bitRate, macroblocks: (Int(rung.width) + 15) / 16 * ((Int(rung.height) + 15) / 16),
        frameDuration: told > 0 ? told : configuration.timescale / 30, timescale: configuration.timescale)
    case .audio(let configuration):
      guard index == 0 else { return nil }
      return RungBudget(
        bitRate: configuration.bitRate, macroblocks: 0,
        frameDuration: AudioEncoding.all[configuration.coding]?.samples ?? 960,
        timescale: configuration.sampleRate)
    }
  }
}
