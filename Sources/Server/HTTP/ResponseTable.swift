internal import Base
internal import NIOCore
internal import NIOHTTP1

/// Recent and awaited responses of one event loop, by request target. Thousands of players request the same playlist and part
/// within milliseconds; only the first request is routed, rendered and encoded. Holds responses to unconditional
/// GETs only. Targets have no token: all who may get a response share it. Confined to the loop.
final class ResponseTable {
  /// The most targets at a time.
  static let capacity = 256
  /// The longest target, in bytes.
  static let targetBytes = 512

  private struct Entry {
    let target: ByteBuffer
    let answer: SharedResponse
    /// The tick in which it was stored.
    let tick: Int
  }

  private var entries: [UInt64: Entry] = [:]
  private var tick = 0

  /// The response for a target, if it is still valid.
  func find(_ target: ByteBuffer) -> SharedResponse? {
    let bytes = target.readableBytesUInt8Span
    guard let entry = entries[bytes.mixed()], entry.answer.isUseful,
      entry.target.readableBytesUInt8Span.isEqual(to: bytes)
    else { return nil }
    return entry.answer
  }

  func keep(_ answer: SharedResponse, for target: ByteBuffer) {
    guard target.readableBytes <= Self.targetBytes else { return }
    if entries.count >= Self.capacity { makeRoom() }
    // Copied: a slice would keep the whole read buffer in memory.
    entries[target.readableBytesUInt8Span.mixed()] = Entry(
      target: ByteBuffer(bytes: target.readableBytesView), answer: answer, tick: tick)
  }

  /// Keeps the response to a request, if others may share it.
  func keep(_ response: HTTPResponse, of answer: HTTPAnswer, for target: ByteBuffer) {
    // One endless body cannot go to two clients.
    if case .live = response.body { return }
    guard let sharing = answer.sharing, response.status == .ok else { return }
    keep(SharedResponse(response, sharing, answer), for: target)
  }

  /// Keeps a place for the response to a request that must wait, if others may share it.
  func await(_ answer: HTTPAnswer, for target: ByteBuffer) -> SharedResponse? {
    guard let sharing = answer.sharing else { return nil }
    let awaited = SharedResponse(awaited: sharing, answer)
    keep(awaited, for: target)
    return awaited
  }

  /// Removes invalid entries. If that is not enough, removes the oldest one without waiting requests. Invented addresses thus
  /// do not displace popular ones.
  private func makeRoom() {
    entries = entries.filter { $0.value.answer.isUseful }
    guard entries.count >= Self.capacity else { return }
    let least = entries.min { Self.rank($0.value) < Self.rank($1.value) }
    if let least { entries[least.key] = nil }
  }

  private static func rank(_ entry: Entry) -> (Int, Int) { (entry.answer.isAwaited ? 1 : 0, entry.tick) }

  /// Removes all entries. Waiting requests still get their response.
  func clear() { entries = [:] }

  /// Removes invalid entries, and those from before the last tick. A table thus holds at most the media that was sent in two
  /// ticks.
  func purge() {
    tick &+= 1
    guard !entries.isEmpty else { return }
    entries = entries.filter { _, entry in
      entry.answer.isUseful && (entry.answer.isAwaited || tick &- entry.tick < 2)
    }
  }
}

/// A response for several requests. Confined to one event loop.
final class SharedResponse {
  /// A waiting connection.
  struct Waiter {
    let connection: any ResponseWaiter
    let client: ClientID
    let acceptsGzip: Bool
  }

  let sharing: Cacheability
  /// Counts the clients that get it.
  let admission: (any Admission)?
  /// Who may get it; nil for all.
  let rule: (any ViewerRule)?
  /// Holds as long as it is open to all.
  let openness: (any ViewerOpenness)?
  /// Whether it was awaited: then it is only for the requests that waited. A later request may have to wait again.
  private let wasAwaited: Bool
  /// Told of each further client over HTTP/2.
  let follow: (@Sendable (SocketAddress) -> Void)?
  /// A placeholder while `waiters` is set.
  private(set) var response: HTTPResponse {
    didSet {
      (playlist, isRefusal) = (response.playlist, response.status.code >= 400)
      isCompressible = playlist != nil || response.compression == .gzip
    }
  }
  /// The response's, so that a request copies no response.
  private(set) var playlist: PreencodedResponse?
  /// There may be a gzip form.
  private var isCompressible = true
  /// Its status is 4xx or 5xx.
  private(set) var isRefusal: Bool
  /// Nil when the response is available. Places of those that have left are used again.
  private var waiters: [Waiter?]?
  private var freePlaces: [Int] = []
  private var http1 = SharedForms<HTTP1Response.Content>()
  private var http2 = SharedForms<HTTP2Response>()

  /// A response that is available. `answer` says who may get it; nil for all.
  init(_ response: HTTPResponse, _ sharing: Cacheability, _ answer: HTTPAnswer? = nil) {
    self.sharing = sharing
    (admission, rule, openness, follow) = (answer?.admission, answer?.rule, answer?.openness, answer?.follow)
    self.response = response
    (playlist, isRefusal) = (response.playlist, response.status.code >= 400)
    isCompressible = playlist != nil || response.compression == .gzip
    wasAwaited = false
  }

  /// A response that is awaited.
  init(awaited sharing: Cacheability, _ answer: HTTPAnswer? = nil) {
    self.sharing = sharing
    (admission, rule, openness, follow) = (answer?.admission, answer?.rule, answer?.openness, answer?.follow)
    (response, playlist, isRefusal) = (StandardResponse.failed, nil, true)
    wasAwaited = true
    waiters = []
  }

  /// Whether the next request may use it. An awaited response is valid until it arrives.
  var isUseful: Bool { wasAwaited ? isAwaited : sharing.isCurrent }

  var isAwaited: Bool { waiters != nil }

  /// Adds a waiting connection while the response is awaited. Returns its place, for `leave`.
  func join(_ waiter: Waiter) -> Int {
    guard let place = freePlaces.popLast() else {
      waiters?.append(waiter)
      return (waiters?.count ?? 1) - 1
    }
    waiters?[place] = waiter
    return place
  }

  /// Removes a waiting connection that has ended: it must not stay in memory until the response comes.
  func leave(_ place: Int) {
    guard let count = waiters?.count, place < count, waiters?[place] != nil else { return }
    waiters?[place] = nil
    freePlaces.append(place)
  }

  /// Passes the response to all waiting connections.
  func resolve(_ response: HTTPResponse) {
    guard let waiters = waiters.take() else { return }
    self.response = response
    for waiter in waiters { if let waiter { waiter.connection.take(self, for: waiter) } }
  }

  /// Head and body for a connection of HTTP/1.1 that continues.
  func content(acceptsGzip: Bool, date: HTTPDate) -> HTTP1Response.Content {
    let acceptsGzip = acceptsGzip && isCompressible
    return http1.use(acceptsGzip: acceptsGzip, in: date.second) {
      let plan = ResponsePlan(response, to: Self.request(acceptsGzip: acceptsGzip))
      let form = HTTP1Response(plan, version: .http1_1, keepsAlive: true, date: date).content
      return (form, isFinal(acceptsGzip))
    }
  }

  /// Head and body for a stream of HTTP/2.
  func http2(acceptsGzip: Bool, date: HTTPDate) -> HTTP2Response {
    let acceptsGzip = acceptsGzip && isCompressible
    return http2.use(acceptsGzip: acceptsGzip, in: date.second) {
      let plan = ResponsePlan(response, to: Self.request(acceptsGzip: acceptsGzip))
      return (HTTP2Response(plan, date: date), isFinal(acceptsGzip))
    }
  }

  /// A long playlist is compressed on another thread. Until then clients get its plain form, which is not kept as the other.
  private func isFinal(_ acceptsGzip: Bool) -> Bool { !acceptsGzip || playlist?.isBeingCompressed != true }

  /// A request that stands for all that share a response; only the target differs.
  static func request(acceptsGzip: Bool) -> HTTPRequest { acceptsGzip ? gzipRequest : plainRequest }

  static let plainRequest = HTTPRequest(method: .get, target: RequestTarget(segments: ["live"]))
  private static let gzipRequest = HTTPRequest(
    method: .get, target: RequestTarget(segments: ["live"]), fields: .list(["accept-encoding": "gzip"]))
}

/// The place of a connection among those that wait for a response.
struct WaitingPlace {
  private let response: SharedResponse
  let place: Int

  /// Joins those that wait for `response`.
  init(in response: SharedResponse, _ waiter: SharedResponse.Waiter) {
    self.response = response
    place = response.join(waiter)
  }

  /// The connection has ended.
  func leave() { response.leave(place) }
}

/// A connection, or one of its streams, that waits for a response.
protocol ResponseWaiter: AnyObject {
  /// Called on the connection's loop.
  func take(_ answer: SharedResponse, for waiter: SharedResponse.Waiter)
}
