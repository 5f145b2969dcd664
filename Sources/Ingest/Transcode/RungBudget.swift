/// How many bytes a worker may give out as one rung: what an encoder of that bit rate makes, with room to spare. It is a
/// bucket that each picture fills with its bytes, after it has let out a picture's share of the bit rate. The encoder
/// shares out its bits by the frame rate that the source tells, whatever its times say, so the bound counts pictures, too;
/// where they come much faster than told the shares shrink, and media of a length have an end. A value.
struct RungBudget: Sendable, Hashable {
  /// What is inside can be no more: nor can a picture, in bytes.
  let capacity: Int
  /// Bytes of a picture in the long run.
  private let share: Int
  /// Ticks from the picture before, from which on it has its whole share.
  private let spacing: Int64
  private var level = 0

  /// - Parameters:
  ///   - bitRate: bits a second.
  ///   - macroblocks: of a picture; 0 for audio.
  ///   - frameDuration: ticks of a picture, or of a frame of audio, as its encoder believes.
  ///   - timescale: ticks a second.
  init(bitRate: UInt32, macroblocks: Int, frameDuration: UInt32, timescale: UInt32) {
    let least = TranscodeLimits.leastPictureBytes + macroblocks * TranscodeLimits.leastMacroblockBytes
    let bytesPerSecond = Int(bitRate) / 8
    capacity =
      bytesPerSecond * TranscodeLimits.budgetSeconds + TranscodeLimits.budgetBytes
      + least * TranscodeLimits.budgetPictures
    let duration = min(max(frameDuration, 1), max(timescale, 1))
    share = bytesPerSecond * TranscodeLimits.budgetFactor * Int(duration) / Int(max(timescale, 1)) + least
    spacing = max(1, Int64(duration) / TranscodeLimits.budgetHaste)
  }

  /// Takes what another budget of the same rung has used.
  mutating func goOn(after other: RungBudget) { level = min(other.level, capacity) }

  /// Takes the next picture, so many ticks after the one before; false where it is too much.
  mutating func take(_ bytes: Int, after ticks: Int64) -> Bool {
    level = max(0, level - share * Int(min(max(ticks, 0), spacing)) / Int(spacing))
    guard bytes <= capacity - level else { return false }
    level += bytes
    return true
  }
}

extension TranscodePlan {
  /// What a rung may have; nil where there is none of that index.
  func budget(ofRung index: Int) -> RungBudget? {
    switch work {
    case .video(let configuration):
      guard configuration.rungs.indices.contains(index) else { return nil }
      let rung = configuration.rungs[index]
      // Where no rate is told the encoder believes in 30 pictures a second.
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
