/// Limits of SRT. What comes from the worker is not trusted, because it handles packets from anywhere.
package enum SRTLimits {
  /// Bytes of one message from the worker.
  static let messageBytes = 256 << 10
  /// Bytes of one message to the worker: the table with all names and keys.
  static let tableBytes = 8 << 20
  /// Bytes of a stream ID (SRTO_STREAMID).
  static let streamIDBytes = 512
  /// Bytes of a text from the worker.
  static let textBytes = 1024
  /// Bytes of media that the worker sends ahead of what the server has taken, for each connection.
  static let credit = 512 << 10
  /// Bytes that are read of one connection before the next one's turn.
  static let turnBytes = 64 << 10
  /// Largest payload of a packet: an Ethernet frame without its headers (SRT_LIVE_MAX_PLSIZE).
  static let payloadBytes = 1456
  /// Connections at a time, unless a setting says otherwise. Each costs a thread of libsrt, and up to 12 MB of packets while the
  /// server does not take them.
  static let connections = 400
  /// As many as have a megabyte each of a quarter of the memory: libsrt's lists of a connection, which it makes and fills at once, its
  /// buffers and a thread. `bytes` are those of all memory.
  package static func connections(ofMemory bytes: Int) -> Int { max(16, bytes / (4 << 20)) }
  /// Those that one site needs: of many, an address may have them until nearly all are taken (`FairShare`).
  static let connectionsOfSite = 8
  /// Connections of an address that do not publish yet.
  static let unauthenticatedPerAddress = 32
  /// Connected callers that wait for the worker's turn.
  static let backlog = 256
  /// Messages other than media that wait to be sent to the server. Further refusals are counted only.
  static let waitingMessages = 4096
  /// Time from the hook to the end of the handshake, in nanoseconds: then its encryption did not match.
  static let handshakePatience: Int64 = 1_000_000_000
  /// Time that a caller is held back while the gate is asked, in nanoseconds; its latency is added.
  static let holdPatience: Int64 = 2_000_000_000
  /// Without media while publishing, in nanoseconds.
  static let idleTimeout: Int64 = 10_000_000_000
  /// Pause of the worker between turns in nanoseconds, so that packets come in batches.
  static let turn: Int64 = 4_000_000
  /// The time within which the server looks for changes of the table, in nanoseconds.
  package static let tableInterval: Int64 = 250_000_000
  /// Pause before a worker is started again, in nanoseconds. It doubles with each that does not live for `healthyLife`.
  static let shortestPause: Int64 = 100_000_000
  static let longestPause: Int64 = 10_000_000_000
  package static let healthyLife: Int64 = 10_000_000_000
  /// Time without a caller, after which the worker ends, in nanoseconds. A caller that shakes hands in that very moment has to call
  /// again, so it is long.
  static let rest: Int64 = 600_000_000_000
  /// Time for a worker to tell its callers that it ends, in nanoseconds.
  static let farewell: Int64 = 500_000_000
  /// Connections that end are freed by libsrt within some seconds. So long after the last one has ended, but no later than that
  /// after the first, the worker gives their memory back to the system. Nanoseconds.
  static let (freedAfter, freedAtLast): (Int64, Int64) = (3_000_000_000, 15_000_000_000)
  /// The worker's address space in bytes, most of it never used: the heap and the stacks of threads.
  static let addressSpace: UInt = 16 << 30
  static let openFiles: UInt = 16
  /// The kernel's buffer for received packets, in bytes. It may give less (net.core.rmem_max).
  static let socketBuffer: Int32 = 8 << 20
}
