package import Storage

/// A body that grows while it is sent: `stream.mp4`. It decides what is sent; the connection decides how, and cuts a
/// viewer that cannot follow (`HTTPLimits.liveBacklogBytes`, `HTTPLimits.liveStall`). Both methods are called on the
/// connection's event loop.
package protocol LiveBody: Sendable {
  /// The head is on its way: from here on `writer` takes pieces. Not called for HEAD.
  func start(_ writer: LiveBodyWriter)
  /// The connection is gone, or was cut, before `finish`: nobody will see what is written from here on. Called once,
  /// and not after `finish`.
  func stop()
}
