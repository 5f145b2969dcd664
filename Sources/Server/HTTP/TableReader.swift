internal import Base

/// How a connection uses the table of responses of its loop, in every version of HTTP. It remembers the token and the client
/// of the last request: a connection sends the same ones with each. Confined to its event loop.
struct TableReader {
  /// What the table has for a request.
  enum Found {
    /// Other requests wait for it, too.
    case awaited(SharedResponse, ClientID)
    case ready(SharedResponse)
    /// The client does not get it.
    indirect case refused(HTTPResponse)
  }

  /// The client that was last admitted to a shared response.
  private var admitted: (stamp: Generation, client: ClientID, tick: Int)?
  private var lastClient = LastClient()
  /// The token that this connection sent last.
  private var token = LastToken()

  /// What the table has; nil when the routes must answer. The head is of a request that others may share. `pass` becomes what
  /// admits the request.
  mutating func find(
    _ head: RequestHead, of peer: HTTPPeer, _ services: HTTPServices, _ loop: LoopContext,
    pass: inout (any ViewerPass)?
  ) -> Found? {
    guard peer.hasSentRequest, let answer = loop.answers.find(head.target),
      let admission = token.admission(of: head, to: answer, services.passes, at: loop.now)
    else { return nil }
    pass = admission.pass
    let client = client(head.fields, of: peer)
    if answer.isAwaited { return .awaited(answer, client) }
    if peer.polls(answer.playlist) {
      services.traffic.add(.refusedPolls)
      return .refused(services.open(StandardResponse.polled))
    }
    // Most requests come from a client that is counted already: then no optional response is made and destroyed.
    if isCounted(client, for: answer, at: loop.now) { return .ready(answer) }
    return refusal(of: client, to: answer, at: loop.now).map { .refused(services.open($0)) } ?? .ready(answer)
  }

  mutating func client(_ fields: RequestFields, of peer: HTTPPeer) -> ClientID {
    lastClient.client(with: fields) { ClientID(peer.source.client(fields), fields) }
  }

  /// Counts the viewer, once per tick for the same client: a connection has far more requests. Nil when it is admitted.
  mutating func refusal(of client: ClientID, to answer: SharedResponse, at tick: Int) -> HTTPResponse? {
    guard !answer.isRefusal, let admission = answer.admission, !isCounted(client, for: answer, at: tick) else {
      return nil
    }
    if let refusal = admission.refusal(of: client) { return refusal }
    admitted = (answer.sharing.stamp, client, tick)
    return nil
  }

  private func isCounted(_ client: ClientID, for answer: SharedResponse, at tick: Int) -> Bool {
    guard let admitted else { return false }
    return admitted.tick == tick && admitted.stamp === answer.sharing.stamp && admitted.client == client
  }
}
