package import Control
internal import HTTP
package import Publishing

/// What a request's tokens show of its sender. Without a token it may watch what is open.
package struct Viewer: Sendable {
  /// The verified tokens: that of the path, and that of the Authorization field.
  package var tokens: [VerifiedToken] = []
  /// The first of them stood before the path.
  var isOfPath = false
  /// Nil while all streams are open.
  let rule: (@Sendable (StreamName) -> ViewersRule)?

  package func maySee(_ stream: StreamName) -> Bool {
    !isGuarded(stream) || tokens.contains { $0.mayWatch(stream) }
  }

  /// Whether only some may watch the stream.
  package func isGuarded(_ stream: StreamName) -> Bool { rule?(stream) == .token }

  /// Chooses what lists show; nil for all.
  package var shows: (@Sendable (StreamName) -> Bool)? { rule == nil ? nil : maySee }
}

extension VerifiedToken: ViewerPass {}

/// Shares a response with those who may watch its stream.
struct StreamViewerRule: ViewerRule {
  let stream: StreamName

  func allows(_ pass: any ViewerPass) -> Bool { (pass as? VerifiedToken)?.mayWatch(stream) ?? false }
}

extension HTTPRequest {
  /// What absolute paths in a response begin with, so that they keep the token: `/~TOKEN`, or nothing, behind
  /// what paths begin with here.
  package var base: String { prefix + (token.flatMap(TokenPrefix.text).map { "/~\($0)" } ?? "") }
}
