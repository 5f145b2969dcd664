internal import FMP4

extension EndReason {
  /// Text of the reason, for publishers and the log.
  package var text: String {
    switch self {
    case .finished: "the publisher ended the stream"
    case .connectionLost(let why): "connection lost: \(why)"
    case .failed(let why): why
    case .replaced: "another publisher took the name over"
    case .shutdown: "the server is shutting down"
    }
  }
}
