/// The limits of this process, as it is configured.
package struct ServerCapacity: Sendable, Hashable {
  /// Streams without a ladder.
  package var streams: Int
  /// Connections of viewers.
  package var connections: Int
  /// Descriptors of the process (`ulimit -n`).
  package var descriptors: Int
  /// Bytes of media in memory, for all streams and for one.
  package var mediaBytes: Int
  package var mediaBytesPerStream: Int

  package init(streams: Int, connections: Int, descriptors: Int, mediaBytes: Int, mediaBytesPerStream: Int) {
    (self.streams, self.connections, self.descriptors, self.mediaBytes, self.mediaBytesPerStream) = (
      streams, connections, descriptors, mediaBytes, mediaBytesPerStream
    )
  }

  package static let none = ServerCapacity(
    streams: 0, connections: 0, descriptors: 0, mediaBytes: 0, mediaBytesPerStream: 0)
}
