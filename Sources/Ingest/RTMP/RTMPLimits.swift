/// Every bound that the RTMP server puts on what a peer may ask of it, but for those on values (`AMFLimits`) and on media
/// (`PublicationLimits`). A peer that passes one hears why, and only its own connection ends.
///
/// Memory of one connection, worst case: before it may publish, a read buffer of `readSizeBeforePublish`, an
/// unfinished message set of `partialBytesBeforePublish`, and answers of `pendingAnswerBytes`: together below
/// 0.5 MiB, and about 10 KiB for a peer that stalls in the handshake. While it publishes, a read buffer of
/// `readSizeWhilePublishing`, unfinished messages of `partialBytesWhilePublishing` and, for the first two seconds,
/// samples of `PublicationLimits.heldBytes`: together below 37 MiB, and typically below 0.3 MiB, because only what has
/// arrived is held. Where messages come faster than `messagesPerSecond`, four read buffers more; when such a peer leaves, for
/// that moment what the system has received of it.
enum RTMPLimits {
  // Chunk stream (RTMP 5.3, 5.4).

  /// Bytes of one audio, video or aggregate message.
  static let mediaMessageBytes = 16 << 20
  /// Bytes of one command, data, shared object or control message.
  static let commandMessageBytes = 64 << 10
  /// Chunk streams that a connection may use.
  static let chunkStreams = 64
  /// A chunk size above this is equivalent to it, since no message is longer (RTMP 5.4.1).
  static let largestChunkSize = 0xFF_FFFF
  /// Chunks smaller than the protocol's default cost more to read than they carry: they are metered.
  static let smallChunkSize = 128
  /// Small chunks a second, and in one burst, before the connection is closed.
  static let smallChunksPerSecond: Int64 = 100_000
  static let smallChunkBurst: Int64 = 200_000
  /// Bytes of all unfinished messages of one connection together.
  static let partialBytesBeforePublish = 256 << 10
  static let partialBytesWhilePublishing = 20 << 20
  /// What is reserved for a message at its first chunk; the rest follows as bytes arrive.
  static let firstReservationBeforePublish = 4 << 10
  static let firstReservationWhilePublishing = 128 << 10

  // Messages of any type: each costs the loop that others share, however small it is.

  /// Messages of fewer than 64 bytes that one connection may send at once, and in a second. Larger ones count less, those of a
  /// kilobyte a sixteenth: a second of 30 pictures with audio of 128 kbit/s counts as 35, so that ten minutes of it, kept
  /// through an outage or read from a file, come as fast as they go, and more at some 50 times its speed. The least that an
  /// encoder sends, 60 tiny pictures and 50 frames of audio, comes at 18 times its speed.
  static let messageBurst: Int64 = 20_000
  static let messagesPerSecond: Int64 = 2_000
  /// Messages that are taken together where they wait: below a millisecond of the loop.
  static let messageBatch: Int64 = 100
  /// Messages inside one aggregate message, which is taken as a whole.
  static let messagesOfAggregate = 4096

  // Commands (RTMP 7.2).

  /// Commands that a connection may send before it publishes.
  static let commandsBeforePublish = 100
  /// Bytes of a name that is repeated in a log line or an answer.
  static let printedNameBytes = 80

  // Time, in nanoseconds.

  /// From accept to an accepted publish command.
  static let publishDeadline: Int64 = 10_000_000_000
  /// From accept to the end of the handshake.
  static let handshakeDeadline: Int64 = 4_000_000_000
  /// Without any byte while publishing.
  static let idleTimeout: Int64 = 10_000_000_000
  /// How long a refused peer may take to read why.
  static let lingerTimeout: Int64 = 2_000_000_000

  // Sockets.

  static let readSizeBeforePublish = 2 << 10
  static let readSizeWhilePublishing = 64 << 10
  /// Answers that a peer leaves unread before it is no longer read itself.
  static let pendingAnswerBytes = 64 << 10
}
