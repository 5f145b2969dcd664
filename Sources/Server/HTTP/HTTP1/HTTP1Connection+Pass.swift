internal import Logging

/// What was admitted by a token ends with it.
extension HTTP1Connection {
  /// Ends what a pass admitted, because that holds no longer.
  func endWithPass() {
    pass = nil
    switch phase {
    case .waiting(let place):
      place?.leave()
      // The connection ends, too: the response that the request waited for is still to come.
      send(services.open(StandardResponse.passEnded.response), to: SharedResponse.plainRequest, keepsAlive: false)
    case .sending, .live:
      services.logger.debug(
        "viewer disconnected", metadata: ["peer": "\(peer.address)", "reason": "its token has ended"])
      writer.resetOnClose()
      close()
    // A publisher is judged by its key.
    case .receiving, .arriving, .lingering, .closed: break
    }
  }
}
