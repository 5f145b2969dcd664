package import NIOCore

/// Takes the body of one request while it arrives, however long it is. All calls are made on the connection's event loop.
package protocol ArrivingBody: AnyObject {
  /// Once accepted, it is a publisher's media, which are not cut off for a viewer.
  var isMedia: Bool { get }
  /// The head has arrived and announces a body. Nothing of it is handed in before `ArrivingBodySource.accept`.
  func begin(_ source: any ArrivingBodySource, on eventLoop: any EventLoop)
  func receive(_ bytes: ByteBuffer)
  /// The body is complete. The client waits for the response.
  func finish()
  /// The client left, or broke HTTP, before the response. Called at most once; nothing follows.
  func abandon(_ reason: String)
}

extension ArrivingBody {
  package var isMedia: Bool { false }
}

/// The connection that a body arrives on.
package protocol ArrivingBodySource: AnyObject {
  /// Asks a waiting client for the body (RFC 9110 §10.1.1), and hands it in from now on.
  func accept()
  /// Hands in nothing until `resume`. The client's bytes then wait in its own machine, but for a buffer.
  func pause()
  func resume()
  /// Responds. The rest of the body is not taken, and the connection ends if there is any.
  func respond(_ response: HTTPResponse)
  /// Closes the connection, or the stream of HTTP/2, without a response.
  func cut()
}

/// The request of an arriving body, and how far it has come.
final class ArrivingRequest {
  let request: HTTPRequest
  let body: any ArrivingBody
  let keepsAlive: Bool
  /// The client sends its body after 100 Continue only, or after some time.
  let awaitsContinue: Bool
  private var isAccepted = false
  private var isPaused = false
  /// The whole body has arrived.
  private(set) var isComplete = false
  /// Bytes that the body did not take yet. In one buffer of their own: they may come one by one, each in a slice of a whole read.
  private var held = ByteBuffer()

  init(_ request: HTTPRequest, _ body: any ArrivingBody, keepsAlive: Bool, awaitsContinue: Bool) {
    self.request = request
    self.body = body
    self.keepsAlive = keepsAlive
    self.awaitsContinue = awaitsContinue
  }

  /// The body takes bytes now.
  var isOpen: Bool { isAccepted && !isPaused && !isComplete }

  func accept() { isAccepted = true }
  func pause() { isPaused = true }
  func resume() { isPaused = false }

  var heldBytes: Int { held.readableBytes }

  /// Keeps bytes for `takeHeld`.
  func hold(_ bytes: ByteBuffer) {
    // What is taken at once need not be copied.
    if isOpen, held.readableBytes == 0 { held = bytes } else { held.writeImmutableBuffer(bytes) }
  }

  /// The next bytes that are held, no more than HTTP/1.1 reads at once; nil when there are none.
  func takeHeld() -> ByteBuffer? {
    guard held.readableBytes > 0 else { return nil }
    let part = held.readSlice(length: min(held.readableBytes, BriefReadAllocator.largest))
    if held.readableBytes == 0 { held = ByteBuffer() }
    return part
  }

  func finish() {
    isComplete = true
    body.finish()
  }
}
