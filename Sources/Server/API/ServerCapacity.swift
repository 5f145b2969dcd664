/// How much of each there can be at a time, as this process was started.
struct ServerCapacity: Sendable, Hashable {
  /// Streams without a ladder.
  var streams: Int
  /// Viewers' connections.
  var connections: Int
  /// Descriptors of the process (`ulimit -n`).
  var descriptors: Int
  /// Bytes of media in memory, of all streams and of one.
  var mediaBytes: Int
  var mediaBytesPerStream: Int
}
