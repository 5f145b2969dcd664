/// The limits of this process, as it is configured.
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

  static let none = ServerCapacity(streams: 0, connections: 0, descriptors: 0, mediaBytes: 0, mediaBytesPerStream: 0)
}
