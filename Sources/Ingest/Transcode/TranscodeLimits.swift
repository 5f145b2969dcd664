/// Every bound of transcoding. What the worker says is not trusted: it decodes what strangers send.
package enum TranscodeLimits {
  /// Rungs of one ladder.
  package static let rungs = 8
  /// Bytes of one message between server and worker, in either direction.
  static let messageBytes = 16 << 20
  /// Bytes of a decoder's or an encoder's configuration.
  static let recordBytes = 65_536
  /// Bytes of what a worker says about its failure.
  static let textBytes = 1024
  /// Coded pictures that the worker may have without having taken them in: enough to keep it busy, few enough that
  /// the server knows how late it is.
  static let picturesInFlight = 8
  /// How much coded media, in milliseconds and in bytes, waits for the worker. Beyond it everything up to the next key
  /// frame is left out.
  static let backlogMilliseconds: Int64 = 3000
  static let backlogBytes = 32 << 20
  /// For each such span that pictures wait, one more is left out after each one that is encoded.
  static let millisecondsLatePerDrop: Int64 = 400
  /// Pictures that wait for one encoder.
  static let encoderQueue = 4
  /// A worker that has something to do and says nothing for so long is stuck, in nanoseconds.
  static let silence: Int64 = 5_000_000_000
  /// How long a worker has for its last pictures, in nanoseconds.
  static let farewell: Int64 = 2_000_000_000
  /// Bytes of a key frame of which a JPEG is made: a message, less what stands in it besides.
  static let stillSampleBytes = messageBytes - recordBytes - 64
  /// Bytes of that JPEG: more than 640×640 pixels of noise need.
  static let stillBytes = 1 << 20
  /// How long a worker has for a JPEG, from its start on, in nanoseconds.
  static let stillPatience: Int64 = 5_000_000_000
  /// Pictures that are so much older than what the worker has taken in do not come any more, in milliseconds.
  static let longestDelay: Int64 = 3000
  /// Pause before a worker is started again, in nanoseconds: doubled each time, up to the longest; the shortest again
  /// after a worker has lived for `healthyLife`.
  static let shortestPause: Int64 = 500_000_000
  static let longestPause: Int64 = 30_000_000_000
  static let healthyLife: Int64 = 30_000_000_000
  /// Samples of the largest picture that is decoded: 8192×4352.
  static let pictureSamples: Int64 = 8192 * 4352
  /// The worker's address space, in bytes.
  static let addressSpace: UInt = 8 << 30
  /// The worker's open files.
  static let openFiles: UInt = 32
}
