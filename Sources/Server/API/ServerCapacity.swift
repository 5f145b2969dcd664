/// The limits of this process, as it was started.
struct ServerCapacity: Sendable, Hashable {
  /// Streams without a ladder.
  var streams: Int
  /// Connections of viewers.
  var connections: Int
  /// Descriptors of the process (`ulimit -n`).
  var descriptors: Int
  /// Bytes of media in memory, for all streams and for one.
  var mediaBytes: Int
  var mediaBytesPerStream: Int
}
