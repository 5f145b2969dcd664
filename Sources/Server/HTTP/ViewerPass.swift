package import NIOCore

/// A verified token. What it admitted ends when it holds no longer.
package protocol ViewerPass: AnyObject, Sendable {
  /// Whether it has neither expired nor been revoked. Called for each request, and several times a second while one is under way.
  var holds: Bool { get }
}

/// Admits everybody to what is open to all, as long as it is.
package protocol ViewerOpenness: ViewerPass {
  /// The same for a client with a token: once it is no longer open, this holds as long as the token admits the client.
  func extended(by token: any ViewerPass) -> any ViewerPass
}

/// Knows the tokens that were verified lately.
package protocol ViewerPasses: Sendable {
  /// The pass of a token in a path; nil unless the token was verified before and still holds. Called on event loops.
  func remembered(_ token: ByteBuffer) -> (any ViewerPass)?
}

/// Decides who may get a response that others get, too.
package protocol ViewerRule: Sendable {
  func allows(_ pass: any ViewerPass) -> Bool
}
