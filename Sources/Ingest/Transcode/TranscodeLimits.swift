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
  /// Configurations and breaks that the worker may have without having answered them.
  static let questions = 16
  /// How much coded media, in milliseconds, in bytes and in number, waits for the worker. Beyond it everything up to the
  /// next key frame is left out. The number is more than there are in that time: of Opus, the shortest frames last 2.5 ms.
  static let backlogMilliseconds: Int64 = 3000
  static let backlogBytes = 32 << 20
  static let backlogEntries = 2048
  /// Bytes of a coded picture that is given to the worker: a message, less what stands in it besides.
  static let sourcePictureBytes = messageBytes - 64
  /// For each such span that pictures wait, one more is left out after each one that is encoded.
  static let millisecondsLatePerDrop: Int64 = 400
  /// How many times its share of the bit rate each picture of a rung may take, in the long run.
  static let budgetFactor = 2
  /// How far ahead of that a rung may be, in seconds of its bit rate: its encoder's buffer holds one.
  static let budgetSeconds = 4
  /// The same at the lowest bit rates: bytes beside those seconds, and so many least pictures.
  static let budgetBytes = 64 << 10
  static let budgetPictures = 8
  /// Bytes of the least picture, and those of each of its macroblocks: what is all noise and all key frames has 0.8 where
  /// libx264 can take nothing more away.
  static let leastPictureBytes = 256
  static let leastMacroblockBytes = 2
  /// Pictures that come so many times faster than the encoder believes have a smaller share each.
  static let budgetHaste: Int64 = 4
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
