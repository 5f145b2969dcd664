/// Limits of the RTMP server on its peers. `AMFLimits` has those on values, and `PublicationLimits` those on media. A
/// peer that exceeds one is told why, and only its connection ends.
///
/// Memory of one connection, worst case. Before it may publish, and after its publication: `bytesBeforePublish`, and
/// about 10 KiB for a peer that stalls in the handshake. Nobody knows it yet, so this is bounded by the number of such connections.
/// While it publishes: a read buffer of `readSizeWhilePublishing`, unfinished messages of `partialBytesWhilePublishing` and, in the
/// first two seconds, samples of `PublicationLimits.heldBytes`. Together this is below 37 MiB, and typically below 0.3 MiB, because
/// only bytes that have arrived are held. A publisher whose frames come in pieces, or with wrong times, may have
/// `FLVFrames.longestFrame` and `PublicationLimits.doubtfulBytes` more. The server bounds what all publishers hold together
/// (`MediaSink.holds`). If messages come faster than `messagesPerSecond`, there are four more read buffers. When such a peer
/// disconnects, the bytes already received by the system are added for a moment.
enum RTMPLimits {
  // Chunk stream (RTMP 5.3, 5.4).

  /// Bytes of one audio, video or aggregate message.
  static let mediaMessageBytes = 16 << 20
  /// Bytes of one command, data, shared object or control message.
  static let commandMessageBytes = 64 << 10
  /// Chunk streams per connection.
  static let chunkStreams = 64
  /// A chunk size above this has the same effect, because no message is longer (RTMP 5.4.1).
  static let largestChunkSize = 0xFF_FFFF
  /// Chunks smaller than the protocol's default cost more to read than they carry, so their rate is limited.
  static let smallChunkSize = 128
  /// Small chunks per second and per burst. More close the connection.
  static let smallChunksPerSecond: Int64 = 100_000
  static let smallChunkBurst: Int64 = 200_000
  /// Total bytes of all unfinished messages of one connection. The first one also holds when a publication has ended. What a client
  /// sends before it publishes has a few hundred bytes, and the longest key some thousand.
  static let partialBytesBeforePublish = 16 << 10
  static let partialBytesWhilePublishing = 20 << 20
  /// Bytes reserved for a message at its first chunk, on each chunk stream. The rest follows as bytes arrive.
  static let firstReservationBeforePublish = 256
  static let firstReservationWhilePublishing = 128 << 10

  // Messages of any type. Each takes time of a shared event loop, however small it is.

  /// Messages of fewer than 64 bytes per burst and per second of one connection. Larger ones count less, those of a
  /// kilobyte a sixteenth. A second of 30 frames with audio of 128 kbit/s counts as 35. So ten minutes of it, buffered
  /// during an outage or read from a file, are taken without delay. More is taken at some 50 times its speed. The
  /// smallest stream of an encoder, 60 tiny frames and 50 audio frames per second, is taken at 18 times its speed.
  static let messageBurst: Int64 = 20_000
  static let messagesPerSecond: Int64 = 2_000
  /// Messages taken together after a pause: below a millisecond of the event loop.
  static let messageBatch: Int64 = 100
  /// Messages inside one aggregate message, which is taken as a whole.
  static let messagesOfAggregate = 4096

  // Commands (RTMP 7.2).

  /// Commands that a connection may send before it publishes.
  static let commandsBeforePublish = 100
  /// Bytes of a name in a log line or a response.
  static let printedNameBytes = 80

  // Time, in nanoseconds.

  /// From accept to an accepted publish command.
  static let publishDeadline: Int64 = 10_000_000_000
  /// From accept to the end of the handshake.
  static let handshakeDeadline: Int64 = 4_000_000_000
  /// Without any byte while publishing.
  static let idleTimeout: Int64 = 10_000_000_000
  /// Time for a refused peer to read the reason.
  static let lingerTimeout: Int64 = 2_000_000_000

  // Sockets.

  static let readSizeBeforePublish = 2 << 10
  static let readSizeWhilePublishing = 64 << 10
  /// Most bytes that the system collects before it wakes the reader (SO_RCVLOWAT). They fit into any socket's buffer.
  static let collectedBytes = 16 << 10
  /// A peer that wants an acknowledgement within fewer bytes than this is read at once.
  static let collectingWindow = 256 << 10
  /// How often connections that collect are looked at, and the silence after which whatever came is read. In nanoseconds. A
  /// command behind a frame waits for the next frame, and without one for the sum of both at most.
  static let collectingCheck: Int64 = 50_000_000
  static let collectingSilence: Int64 = 50_000_000
  /// Unread bytes of responses at which weir stops reading from the peer. What was read until then is still answered.
  static let pendingAnswerBytesBeforePublish = 8 << 10
  static let pendingAnswerBytesWhilePublishing = 64 << 10
  /// The most bytes that a connection holds which does not publish: buffers of unfinished messages have up to twice their bytes,
  /// and those of all chunk streams their reservations. The rest is for what is read, and for responses.
  static let bytesBeforePublish =
    2 * partialBytesBeforePublish + chunkStreams * firstReservationBeforePublish + (16 << 10)
  /// One part in this many of the memory is for connections that do not publish; so many may there be at any rate.
  static let memoryShareBeforePublish = 16
  static let leastConnectionsBeforePublish = 64
}
