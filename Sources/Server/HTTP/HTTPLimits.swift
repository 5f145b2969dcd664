internal import NIOCore

/// Limits of the HTTP server: for one connection, for one address, and for all. The defaults suit the public Internet; tests
/// shorten the times.
package struct HTTPLimits: Sendable {
  /// The longest request target, in bytes; beyond it 414.
  var targetBytes = 4096
  /// The longest header field, name and value, in bytes; beyond it 431.
  var headerFieldBytes = 8 * 1024
  /// Target and all header fields of a request, in bytes; beyond it 431.
  var headerBytes = 32 * 1024
  /// Header fields of a request; beyond it 431.
  var headerCount = 100
  /// The body of a request that changes something, in bytes; over HTTP/2, all unfinished bodies of a connection; beyond it 413.
  /// Bodies for weir are a few words. Other requests have none.
  var requestBodyBytes = 8 * 1024
  /// Requests that one connection may send before the response to the first.
  var pipelinedRequests = 128
  /// Requests per second of one connection for the same version of a playlist, without requests for media in between; beyond it
  /// 429. 0 means no limit.
  package var repeatedPolls = 100
  /// Open requests of one HTTP/2 connection at a time.
  package var streams = 100
  /// Refused requests beyond `streams` of one HTTP/2 connection, at once and per minute; beyond them the connection is ended.
  /// Few clients send more than 100 before they have read the limit, and none has a reason to later.
  var refusedStreams = 1000

  /// Bytes of requests that a client has sent ahead and that wait for a turn of their event loop.
  var pipelinedBytes = 64 * 1024
  /// From a request's first byte (or the connection's start) to the end of its head.
  var headerTime: TimeAmount = .seconds(10)
  /// A connection that may only probe is over then, whatever it does.
  var probeTime: TimeAmount = .seconds(2)
  /// From the end of a request's head to the end of its body.
  var bodyTime: TimeAmount = .seconds(20)
  /// From the end of a response to the first byte of the next request.
  var idleTime: TimeAmount = .seconds(60)
  /// While bytes wait to be sent: the longest time for the client to take `SocketWriter.wakeBytes`. Then it is disconnected.
  var writeStall: TimeAmount = .seconds(20)
  /// The same for an endless body, which is useless when late.
  var liveStall: TimeAmount = .seconds(10)
  /// The most bytes of an endless body that may wait at two ticks in a row. They are shared media, not memory of this viewer.
  var liveBacklogBytes = 8 << 20
  /// Multiple of `liveBacklogBytes` that may wait at any time: a new stream sends all that was held back at once.
  var liveBurstFactor = 8
  /// How long input of a refused client is read before the connection is closed, and how long a client of HTTP/2 may open streams
  /// behind the first GOAWAY.
  var lingerTime: TimeAmount = .seconds(2)
  /// How long responses may continue when the server stops.
  var stopTime: TimeAmount = .seconds(2)

  /// Connections of the server; beyond it 503 with Retry-After.
  package var connections = 10_000
  /// Connections beyond `connections` that get a 503. Further ones are closed at once.
  package var refusedConnections = 64
  /// Connections of one address without a complete request.
  var requestlessConnectionsPerAddress = 2048
  /// Connections of one address that is not a trusted proxy; nil for no limit. Further ones are closed at once.
  package var connectionsPerAddress: Int?
  /// The kernel's queue of connections that are not accepted yet.
  var listenBacklog: Int32 = 1024

  package init() {}
}
