internal import NIOCore

/// Requests whose body is taken while it arrives.
extension HTTP1Connection: ArrivingBodySource {
  func begin(_ arriving: ArrivingRequest) {
    peer.requestArrived()
    since = loop.now
    isWithinHead = false
    guard peer.isServed else {
      return send(services.open(peer.refusal), to: arriving.request, keepsAlive: false)
    }
    phase = .arriving(arriving)
    arriving.body.begin(self, on: loop.eventLoop)
  }

  func take(_ part: RequestPart, of arriving: ArrivingRequest) {
    switch part {
    case .head: break
    case .body(let bytes): arriving.body.receive(bytes)
    case .end: arriving.finish()
    }
  }

  func accept() {
    guard case .arriving(let arriving) = phase else { return }
    arriving.accept()
    if arriving.body.isMedia {
      peer.keep()
      context.channel.readBursts()
    }
    if arriving.awaitsContinue, waiting.isEmpty { _ = writer.send(StandardResponse.goOn) }
    takeParts()
  }

  func pause() {
    if case .arriving(let arriving) = phase { arriving.pause() }
  }

  func resume() {
    guard case .arriving(let arriving) = phase else { return }
    arriving.resume()
    takeParts()
  }

  func respond(_ response: HTTPResponse) {
    guard case .arriving(let arriving) = phase else { return }
    let keepsAlive = arriving.isComplete && arriving.keepsAlive && !isStopping
    if arriving.body.isMedia { context.channel.readBriefly() }
    if !keepsAlive { waiting.removeAll() }
    send(services.origins.applied(to: response, of: arriving.request), to: arriving.request, keepsAlive: keepsAlive)
    takeParts()
  }

  func cut() { close() }
}
