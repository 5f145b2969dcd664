internal import LibAV
internal import NIOCore

/// Cuts audio into the encoder's frames. Used on one thread.
final class AudioFramer {
  private let encoder: AudioEncoder
  private var left: [Float] = []
  private var right: [Float] = []
  private var encoded: Int64 = 0

  init(_ encoder: AudioEncoder) { self.encoder = encoder }

  func collect(_ left: [Float], _ right: [Float]) {
    self.left += left
    self.right += right
  }

  /// Encodes all whole frames. Passes each with the number of its first sample and its length in samples.
  func encode(_ receive: (Int64, Int, ByteBuffer) -> Void) throws {
    let size = encoder.samplesPerFrame
    var used = 0
    while left.count - used >= size {
      try encoder.encode(left: Array(left[used..<used + size]), right: Array(right[used..<used + size]), at: encoded) {
        receive($0, size, $1)
      }
      encoded += Int64(size)
      used += size
    }
    left.removeFirst(used)
    right.removeFirst(used)
  }

  /// Outputs the rest, filled up with silence, and everything still in the encoder.
  func finish(_ receive: (Int64, Int, ByteBuffer) -> Void) throws {
    let rest = (encoder.samplesPerFrame - left.count % encoder.samplesPerFrame) % encoder.samplesPerFrame
    collect([Float](repeating: 0, count: rest), [Float](repeating: 0, count: rest))
    try encode(receive)
    try encoder.finish { receive($0, encoder.samplesPerFrame, $1) }
  }
}
