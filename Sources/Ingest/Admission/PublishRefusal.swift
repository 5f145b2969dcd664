/// Why a publisher is not admitted. The text says what failed, with which value, why, and what to do.
package enum PublishRefusal: Error, Sendable, Hashable {
  /// The key is missing or wrong.
  case unauthorized
  /// Another publisher holds the name and keeps it.
  case busy(stream: StreamName, holder: String)
  /// Too many switches of publisher within a short time.
  case tooManyTakeovers(stream: StreamName, retryAfterSeconds: Int)
  /// Publications of the stream began and timestamps jumped too often within a minute.
  case tooManyBreaks(stream: StreamName, retryAfterSeconds: Int)
  /// The address took too many new names without a key.
  case tooManyNames(limit: Int, retryAfterSeconds: Int)
  /// The address holds as many streams as one may without a key.
  case tooManyOfAddress(streams: Int)
  /// The server has as many streams as it may have.
  case tooManyStreams(limit: Int)
  /// The server has no room for another stream: what it lacks, and what to do about it.
  case noRoom(String)
  /// The server is going down.
  case shuttingDown

  /// One word for figures.
  package var code: String {
    switch self {
    case .unauthorized: "unauthorized"
    case .busy: "busy"
    case .tooManyTakeovers: "takeovers"
    case .tooManyBreaks: "breaks"
    case .tooManyNames: "names"
    case .tooManyOfAddress: "address"
    case .tooManyStreams: "streams"
    case .noRoom: "room"
    case .shuttingDown: "shutdown"
    }
  }

  package var description: String {
    switch self {
    case .unauthorized:
      "the publish key is missing or wrong; put it behind the stream name: NAME?key=SECRET"
    case .busy(_, let holder):
      "this name is being published by \(holder); stop that publisher or choose another name"
    case .tooManyTakeovers(_, let seconds):
      "two publishers are fighting for this name; wait \(seconds) s or choose another name"
    case .tooManyBreaks(_, let seconds):
      "this stream began anew and jumped too often within a minute; wait \(seconds) s and check encoder and uplink"
    case .tooManyNames(let limit, let seconds):
      "this address took \(limit) names without a key; wait \(seconds) s for another one, or publish with a key"
    case .tooManyOfAddress(let streams):
      "without a key this address may have half of the streams that there is room for, and has \(streams); end one, or"
        + " publish with a key"
    case .tooManyStreams(let limit):
      "the server has \(limit) streams, and may have no more (--max-streams); end one, or raise the limit"
    case .noRoom(let reason): reason
    case .shuttingDown: "the server is shutting down"
    }
  }

  /// The same without anybody's address.
  package var publicDescription: String {
    guard case .busy = self else { return description }
    return "this name is being published already; stop that publisher or choose another name"
  }
}
