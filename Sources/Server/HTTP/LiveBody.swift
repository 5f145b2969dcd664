package import Storage

/// A body that grows while it is sent: `stream.mp4`. It decides what is sent; the connection decides how, and disconnects a
/// viewer that is too slow (`HTTPLimits.liveBacklogBytes`, `HTTPLimits.liveStall`). Both methods are called on the
/// connection's event loop.
package protocol LiveBody: Sendable {
  /// The head was sent; `writer` takes pieces from now on. Not called for HEAD.
  func start(_ writer: LiveBodyWriter)
  /// The connection closed before `finish`; further pieces are dropped. Called at most once, and not after `finish`.
  func stop()
}
