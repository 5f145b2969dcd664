/// Limits of transcoding. The worker's output is not trusted, because it decodes untrusted input.
package enum TranscodeLimits {
  /// Rungs of one ladder.
  package static let rungs = 8
  /// Tracks of one publication that are decoded because outputs do not carry their codec. Each has a worker.
  static let decodedTracks = 4
  /// Bytes of one message between server and worker, in both directions.
  static let messageBytes = 16 << 20
  /// Bytes of a decoder's or encoder's configuration record.
  static let recordBytes = 65_536
  /// Bytes of a worker's error text.
  static let textBytes = 1024
  /// Coded frames that the worker may have without having consumed them. Enough to keep it busy, and few enough for the
  /// server to measure its lateness.
  static let framesInFlight = 8
  /// Configurations and breaks sent to the worker without a reply.
  static let questions = 16
  /// Limits of the queue for the worker: milliseconds of coded media, bytes and entries. Beyond them everything up to
  /// the next key frame is dropped. The number of entries is more than that time can have: the shortest frames of Opus
  /// last 2.5 ms.
  static let backlogMilliseconds: Int64 = 3000
  /// The same for audio: nanoseconds since its arrival, and entries. A file that is sent twenty times as fast as it plays
  /// may not overtake a worker that is started or served late, so its entries alone are bounded.
  static let audioBacklog: Int64 = 10_000_000_000
  static let audioBacklogEntries = 8192
  static let backlogBytes = 32 << 20
  static let backlogEntries = 2048
  /// Most bytes of a coded frame for the worker: a message without its other fields.
  static let sourceFrameBytes = messageBytes - 64
  /// For each such span of lateness, one more frame is dropped after each encoded one.
  static let millisecondsLatePerDrop: Int64 = 400
  /// Long-term limit of a rung's frames, as a multiple of the bit rate.
  static let budgetFactor = 2
  /// How far ahead of that limit a rung may be, in seconds of its bit rate. Its encoder's buffer holds one.
  static let budgetSeconds = 4
  /// Additions for the lowest bit rates: bytes, and a number of minimal frames.
  static let budgetBytes = 64 << 10
  static let budgetFrames = 8
  /// Bytes of a minimal frame, and of each of its macroblocks. Noise in key frames only takes 0.8 per macroblock at the
  /// coarsest setting of libx264.
  static let leastFrameBytes = 256
  static let leastMacroblockBytes = 2
  /// Frames that come more than this many times faster than the encoder's frame rate get a smaller share each.
  static let budgetHaste: Int64 = 4
  /// Most frames that wait for one encoder.
  static let encoderQueue = 4
  /// A worker that has work and sends nothing for this long is stuck. Nanoseconds.
  static let silence: Int64 = 5_000_000_000
  /// Time for a worker to output its last frames, in nanoseconds. That of audio may take longer in all while it goes on, for
  /// what a fast publisher sent.
  static let farewell: Int64 = 2_000_000_000
  static let audioFarewell: Int64 = 60_000_000_000
  /// Most bytes of a key frame for a JPEG: a message without its other fields.
  static let stillSampleBytes = messageBytes - recordBytes - 64
  /// Most bytes of that JPEG. 640×640 pixels of noise need less.
  static let stillBytes = 1 << 20
  /// Time for a worker to make a JPEG, from its start, in nanoseconds.
  static let stillPatience: Int64 = 5_000_000_000
  /// Frames this much older than what the worker has consumed no longer come. Milliseconds.
  static let longestDelay: Int64 = 3000
  /// Pause before a worker is restarted, in nanoseconds. It doubles each time, up to the longest. It is the shortest
  /// again after a worker has run for `healthyLife`.
  static let shortestPause: Int64 = 500_000_000
  static let longestPause: Int64 = 30_000_000_000
  static let healthyLife: Int64 = 30_000_000_000
  /// Largest frame that is decoded, in samples: 8192×4352.
  static let maximumPixels: Int64 = 8192 * 4352
  /// The worker's address space, in bytes.
  static let addressSpace: UInt = 8 << 30
  /// The worker's open files.
  static let openFiles: UInt = 32
}
