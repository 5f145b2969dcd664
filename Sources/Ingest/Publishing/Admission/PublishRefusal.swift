/// Why a publisher is not admitted. The text says what failed, with which value, why, and what to do.
package enum PublishRefusal: Error, Sendable, Hashable {
  /// The key is missing or wrong.
  case unauthorized
  /// The server that decides about publishers does not answer.
  case unanswered
  /// The stream takes publishers from certain addresses only.
  case addressNotAllowed
  /// Another publisher uses the name and keeps it.
  case busy(stream: StreamName, holder: String)
  /// Too many changes of publisher within a short time.
  case tooManyTakeovers(stream: StreamName, retryAfterSeconds: Int)
  /// Too many starts of the stream and jumps of its timestamps within a minute.
  case tooManyBreaks(stream: StreamName, retryAfterSeconds: Int)
  /// The address used too many new names without a key.
  case tooManyNames(limit: Int, retryAfterSeconds: Int)
  /// The address has as many streams as are allowed without a key.
  case tooManyOfAddress(streams: Int)
  /// The server has reached its limit of streams.
  case tooManyStreams(limit: Int)
  /// The server has no resources for another stream. The text names the missing resource and the remedy.
  case noRoom(String)
  /// The server is shutting down.
  case shuttingDown

  /// One word, for metrics.
  package var code: String {
    switch self {
    case .unauthorized: "unauthorized"
    case .unanswered: "unanswered"
    case .addressNotAllowed: "address-not-allowed"
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
    case .unanswered: "the server that decides about publishers does not answer; try again in a few seconds"
    case .addressNotAllowed: "this stream takes publishers from certain addresses only (publishFrom), and this is none"
    case .busy(_, let holder):
      "this name is being published by \(holder); stop that publisher or choose another name"
    case .tooManyTakeovers(_, let seconds):
      "two publishers are fighting for this name; wait \(seconds) s or choose another name"
    case .tooManyBreaks(_, let seconds):
      "this stream restarted and jumped too often within a minute; wait \(seconds) s and check encoder and uplink"
    case .tooManyNames(let limit, let seconds):
      "this address took \(limit) names without a key; wait \(seconds) s for another one, or publish with a key"
    case .tooManyOfAddress(let streams):
      "without a key an address may have half of the streams that fit, and this one has \(streams); end one, or"
        + " publish with a key"
    case .tooManyStreams(let limit):
      "the server has reached its limit of \(limit) streams (--max-streams); end one, or raise the limit"
    case .noRoom(let reason): reason
    case .shuttingDown: "the server is shutting down"
    }
  }

  /// The description without any address.
  package var publicDescription: String {
    guard case .busy = self else { return description }
    return "this name is being published already; stop that publisher or choose another name"
  }
}
