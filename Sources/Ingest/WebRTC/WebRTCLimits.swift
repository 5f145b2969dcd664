internal import Publishing

/// Limits of WebRTC. Rows in docs/limits.md.
enum WebRTCLimits {
  /// Bytes of an offer.
  static let offerBytes = 64 * 1024
  /// Lines of an offer, and bytes of one.
  static let offerLines = 2000
  static let lineBytes = 4096
  /// Media sections of an offer, and payload formats of one.
  static let mediaSections = 16
  static let formats = 64
  /// Longest ufrag and password (RFC 8839 §5.4).
  static let credentialBytes = 256
  /// Bytes of a datagram, also of one within TCP (RFC 4571).
  static let datagramBytes = 2048
  /// Bytes of payload in a datagram of DTLS, so that no path splits it.
  static let mtu = 1200
  /// Addresses of a session's peer that are remembered.
  static let paths = 8
  /// How long an address stays with a session whose media came from there, in nanoseconds.
  static let placeHold: Int64 = 2_000_000_000
  /// Encodings of simulcast that are read of a media section, and that are taken of it.
  static let offeredEncodings = 16
  static let encodings = 4
  /// Senders (SSRC) that a session may show, of media and of packets that come again.
  static let sources = 2 * PublicationLimits.tracks
  /// Senders that keys are kept of: those of media, and those of reports alone.
  static let securedSources = 2 * sources
  /// Packets of a sender that wait for an earlier one, and their bytes.
  static let heldPackets = 1024
  static let heldBytes = 2 << 20
  /// How long a missing packet is waited for, in nanoseconds, and where packets come again slowly.
  static let reorderWait: Int64 = 250_000_000
  static let longestReorderWait: Int64 = 600_000_000
  /// How long a warning about numbers of packets stays behind the newest cause, in nanoseconds.
  static let jumpsTold: Int64 = 30_000_000_000
  /// A pause of a sender, in nanoseconds, behind which its media begin anew: a longer step is no gap of a timeline. And how long what
  /// comes first behind it waits until it is known whether the sender catches up.
  static let (longestPause, pauseDoubt): (Int64, Int64) = (10_000_000_000, 1_000_000_000)
  /// Bytes of one video frame.
  static let frameBytes = 8 << 20
  /// Silence that is made up beyond the time that passed, in nanoseconds.
  static let silenceAhead: Int64 = 500_000_000
  /// Packets that are missing at a time and are asked for again.
  static let missingPackets = 256
  /// Times of arrival that wait for the next feedback.
  static let arrivals = 1024
  /// Sessions of an address that are not connected, and of all addresses: of publishers, and of viewers.
  static let unconnectedPerAddress = 32
  static let unconnected = 1024
  /// Connections by TCP of an address beyond one of each session. That of all addresses is `WebRTCConfiguration.connections`.
  static let connectionsPerAddress = 16
  /// From the answer to the end of the handshake, in nanoseconds.
  static let connectDeadline: Int64 = 15_000_000_000
  /// Without media, in nanoseconds. Below the 30 s after which consent ends (RFC 7675 §5.1).
  static let idleTimeout: Int64 = 20_000_000_000
  /// Bytes of reports that a publisher is owed at most.
  static let reportCredit = 64 * 1024
  /// How long the reason is kept why a session was ended, in nanoseconds, and of how many sessions.
  static let (endKept, endsKept): (Int64, Int) = (60_000_000_000, 256)
  /// From the connection by TCP to a request that names its session, in nanoseconds.
  static let unassignedDeadline: Int64 = 5_000_000_000
  /// Bytes that wait to be sent by TCP; a peer that does not read is closed.
  static let pendingBytes = 256 * 1024

  // MARK: viewers

  /// Bytes of a packet's payload, so that no path splits it.
  static let payloadBytes = 1180
  /// Bytes of a packet of audio, which is not taken apart.
  static let audioPayloadBytes = 1400
  /// Connections by TCP of a viewer.
  static let connectionsOfViewer = 1
  /// Streams that are watched by WebRTC at a time.
  static let relays = 256
  /// Bytes of packets that are kept of a stream, for all of its viewers, and of all streams.
  static let keptBytes = 8 << 20
  static let keptBytesInAll = 128 << 20
  /// How long packets are kept behind the newest key frame's, in nanoseconds.
  static let keptTime: Int64 = 2_000_000_000
  /// Bytes of samples of a stream that wait to become packets.
  static let waitingBytes = 16 << 20
  /// Packets of each kind that a viewer may ask for again.
  static let repeatablePackets = 1024
  /// Numbers that are read of one request for packets.
  static let repeatsOfRequest = 256
  /// How long a packet may wait for a viewer that is slow, in nanoseconds. Then it skips to a key frame.
  static let viewerLag: Int64 = 1_500_000_000
  /// How long a viewer that was too slow gets a smaller video before it tries a better one, in nanoseconds. Each try that fails
  /// doubles it.
  static let (leastPatience, mostPatience): (Int64, Int64) = (30_000_000_000, 600_000_000_000)
  /// How often a viewer may skip within `skipTime` nanoseconds where there is no smaller video. Then it is ended.
  static let skips = 5
  static let skipTime: Int64 = 30_000_000_000
  /// Nanoseconds between two requests to a stream for a key frame.
  static let keyFramePause: Int64 = 500_000_000
  /// Without a sign of the viewer, in nanoseconds. Below the 30 s after which consent ends (RFC 7675 §5.1).
  static let viewerSilence: Int64 = 20_000_000_000
}
