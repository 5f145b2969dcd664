internal import NIOCore

/// What one peer may ask of the HTTP server. The defaults are meant for the open Internet; tests shorten the times.
package struct HTTPLimits: Sendable {
  /// The request line's target, in bytes.
  var targetBytes = 4096
  /// One header field, name and value, in bytes.
  var headerFieldBytes = 8 * 1024
  /// Target and all header fields of a request, in bytes: beyond it 431.
  var headerBytes = 32 * 1024
  /// Header fields of a request: beyond it 431.
  var headerCount = 100
  /// The body of a request that changes something, in bytes, over HTTP/2 those of a connection that are under way: beyond it
  /// 413. A few words are all that weir is sent. Other requests have none.
  var requestBodyBytes = 8 * 1024
  /// Requests that one connection sent before the first of them was answered.
  var pipelinedRequests = 128
  /// Times a second that one connection may ask for one and the same state of a playlist without asking for media in
  /// between; beyond it 429. 0 is no limit.
  package var repeatedPolls = 100
  /// Requests that one HTTP/2 connection may have open at a time.
  package var streams = 100
  /// Requests beyond `streams` that one HTTP/2 connection may have refused at once, and in a minute: beyond them it is ended.
  /// Few clients send more than 100 before they have read what is allowed, and none has a reason to afterwards.
  var refusedStreams = 1000

  /// From a request's first byte (or the connection's start) to the end of its head.
  var headerTime: TimeAmount = .seconds(10)
  /// From the end of a request's head to the end of its body.
  var bodyTime: TimeAmount = .seconds(20)
  /// Between the end of a response and the first byte of the next request.
  var idleTime: TimeAmount = .seconds(60)
  /// While there is something to send: this long without the peer taking `SocketWriter.wakeBytes` more, and it is cut.
  var writeStall: TimeAmount = .seconds(20)
  /// The same for an endless body, which is worth nothing late.
  var liveStall: TimeAmount = .seconds(10)
  /// What may wait to be sent of an endless body at two looks in a row, in bytes of the shared media (not of this viewer's
  /// memory).
  var liveBacklogBytes = 8 << 20
  /// So many times that may wait at any moment: a stream that begins brings out at once all that was held back for it.
  var liveBurstFactor = 8
  /// How long a refused peer may go on sending before the connection is closed under it.
  var lingerTime: TimeAmount = .seconds(2)
  /// How long responses may go on when the server stops.
  var stopTime: TimeAmount = .seconds(2)

  /// Connections of the server: beyond it 503 with Retry-After.
  package var connections = 10_000
  /// Connections beyond `connections` that are told so; whoever comes after them is closed at once.
  package var refusedConnections = 64
  /// Connections of one address that have not yet sent a whole request.
  var unprovenConnectionsPerAddress = 2048
  /// Connections of one address that is no trusted proxy; nil for any number. Those beyond it are closed at once.
  package var connectionsPerAddress: Int?
  /// The kernel's queue of connections not yet accepted.
  var listenBacklog: Int32 = 1024

  package init() {}
}
