internal import Base
internal import NIOCore

/// The token that a connection sent last. A viewer sends the same one with each request, so it is looked up once.
struct LastToken {
  /// What admits a request to a response of the table; nil for one that is open to all.
  struct Admission {
    var pass: (any ViewerPass)?
  }

  /// An object, since most connections have none.
  private final class Known {
    let text: ByteBuffer
    let pass: any ViewerPass
    /// The stream that it was admitted to last, and the tick of that.
    var admitted: (stamp: Generation, tick: Int)?
    /// What admits it to the open stream that it was given last.
    var open: (openness: any ViewerOpenness, pass: any ViewerPass)?

    init(text: ByteBuffer, pass: any ViewerPass) {
      (self.text, self.pass) = (text, pass)
    }
  }

  private var known: Known?

  /// Nil when the request may not get the response: then the routes say why.
  mutating func admission(
    of head: RequestHead, to answer: SharedResponse, _ passes: (any ViewerPasses)?, at tick: Int
  ) -> Admission? {
    if let openness = answer.openness, !openness.holds { return nil }
    guard head.token != nil || answer.rule != nil else { return Admission(pass: answer.openness) }
    guard let text = head.token, let passes else { return nil }
    if !isKnown(text) {
      // Copied: a slice would keep the whole read buffer in memory.
      known = passes.remembered(text).map { Known(text: ByteBuffer(bytes: text.readableBytesView), pass: $0) }
    }
    guard let pass = known?.pass, pass.holds, mayTake(answer, by: pass, at: tick) else {
      known = nil
      return nil
    }
    return Admission(pass: answer.openness.map { admission(to: $0, by: pass) } ?? pass)
  }

  private func isKnown(_ text: ByteBuffer) -> Bool {
    guard let own = known?.text else { return false }
    return own.readableBytesUInt8Span.isEqual(to: text.readableBytesUInt8Span)
  }

  /// The token goes on when the stream is open to all no longer. Made once: a viewer gets many responses of one stream.
  private mutating func admission(to openness: any ViewerOpenness, by pass: any ViewerPass) -> any ViewerPass {
    if let open = known?.open, open.openness === openness { return open.pass }
    let extended = openness.extended(by: pass)
    known?.open = (openness, extended)
    return extended
  }

  /// Asks the rule once per tick for the same stream: a connection has far more requests.
  private mutating func mayTake(_ answer: SharedResponse, by pass: any ViewerPass, at tick: Int) -> Bool {
    guard let rule = answer.rule else { return true }
    let stamp = answer.sharing.stamp
    if let admitted = known?.admitted, admitted.stamp === stamp, admitted.tick == tick { return true }
    guard rule.allows(pass) else { return false }
    known?.admitted = (stamp, tick)
    return true
  }
}
