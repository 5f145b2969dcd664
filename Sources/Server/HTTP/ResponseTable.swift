internal import Ingest
internal import NIOCore
internal import NIOHTTP1
internal import Storage

/// What one event loop has answered in this moment or is waiting to answer, by request target: thousands of players ask
/// for the same playlist and the same part within milliseconds, and only the first of them has it found, rendered and
/// encoded. Holds plain requests only (GET, HTTP/1.1, nothing conditional). Confined to the loop.
final class ResponseTable {
  /// Targets that are kept at a time.
  static let capacity = 256
  /// Longer targets are not kept, in bytes.
  static let targetBytes = 512

  private struct Entry {
    let target: ByteBuffer
    let answer: SharedResponse
    /// The tick in which it was kept.
    let tick: Int
  }

  private var entries: [UInt64: Entry] = [:]
  private var tick = 0

  /// What is known for a target, if that is still true.
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
    // A copy: a slice would keep all that was read with it.
    entries[target.readableBytesUInt8Span.mixed()] = Entry(
      target: ByteBuffer(bytes: target.readableBytesView), answer: answer, tick: tick)
  }

  /// Forgets what is of no use any more, else something that nobody waits for, the oldest, so that addresses that were
  /// made up take nothing from those that many ask for.
  private func makeRoom() {
    entries = entries.filter { $0.value.answer.isUseful }
    guard entries.count >= Self.capacity else { return }
    let least = entries.min { Self.rank($0.value) < Self.rank($1.value) }
    if let least { entries[least.key] = nil }
  }

  private static func rank(_ entry: Entry) -> (Int, Int) { (entry.answer.isAwaited ? 1 : 0, entry.tick) }

  /// Forgets everything. Who waits for an answer is given it nevertheless.
  func clear() { entries = [:] }

  /// Forgets what is of no use any more and what is known since before the last tick: the media that a table holds is
  /// what was sent in two of them at most.
  func purge() {
    tick &+= 1
    guard !entries.isEmpty else { return }
    entries = entries.filter { _, entry in
      entry.answer.isUseful && (entry.answer.isAwaited || tick &- entry.tick < 2)
    }
  }
}

/// An answer that many get. Confined to one event loop.
final class SharedResponse {
  /// Somebody who waits for it.
  struct Waiter {
    let connection: any ResponseWaiter
    let client: ClientID
    let acceptsGzip: Bool
  }

  /// Bodies up to this size are sent with their head from one buffer, as soon as a second client wants them.
  static let flatBytes = 128 * 1024

  let sharing: Cacheability
  /// Counts those who are given it.
  let admission: (any Admission)?
  /// Whether it was waited for: then it was for those who waited. Who comes later may have to wait again.
  private let wasAwaited: Bool
  /// Until `seats` is nil: that it is not known.
  private(set) var response: HTTPResponse
  /// Nil once the answer is known.
  private var waiters: [Waiter]?
  /// Plain and gzip, for the second in which they were encoded.
  private var plain = Encoded()
  private var gzip = Encoded()
  private var second: Int64 = .min

  private struct Encoded {
    var content: HTTP1Response.Content?
    var uses = 0
  }

  /// An answer that is known.
  init(_ response: HTTPResponse, _ sharing: Cacheability, _ admission: (any Admission)? = nil) {
    self.sharing = sharing
    self.admission = admission
    self.response = response
    wasAwaited = false
  }

  /// An answer that is waited for.
  init(awaited sharing: Cacheability, _ admission: (any Admission)? = nil) {
    self.sharing = sharing
    self.admission = admission
    response = StandardResponse.failed
    wasAwaited = true
    waiters = []
  }

  /// Whether the next one who asks may have it, too: an answer to come is good until it has come.
  var isUseful: Bool { wasAwaited ? isAwaited : sharing.isCurrent }

  var isAwaited: Bool { waiters != nil }

  /// Lets a connection wait, while the answer is not known.
  func join(_ waiter: Waiter) { waiters?.append(waiter) }

  /// The answer has come: everybody who waits is given it.
  func resolve(_ response: HTTPResponse) {
    guard let waiters = waiters.take() else { return }
    self.response = response
    for waiter in waiters { waiter.connection.take(self, for: waiter) }
  }

  /// Head and body for a connection that goes on.
  func content(acceptsGzip: Bool, date: HTTPDate) -> HTTP1Response.Content {
    if second != date.second {
      (plain, gzip) = (Encoded(), Encoded())
      second = date.second
    }
    return acceptsGzip
      ? Self.content(&gzip, response, acceptsGzip: true, date: date)
      : Self.content(&plain, response, acceptsGzip: false, date: date)
  }

  private static func content(
    _ encoded: inout Encoded, _ response: HTTPResponse, acceptsGzip: Bool, date: HTTPDate
  ) -> HTTP1Response.Content {
    encoded.uses &+= 1
    if let content = encoded.content {
      guard encoded.uses == 2 else { return content }
      let flat = flat(content)
      encoded.content = flat
      return flat
    }
    let plan = ResponsePlan(response, to: request(acceptsGzip: acceptsGzip))
    let content = HTTP1Response(plan, version: .http1_1, keepsAlive: true, date: date).content
    encoded.content = content
    return content
  }

  /// What all who share an answer have asked, but for the target: something of a stream.
  static func request(acceptsGzip: Bool) -> HTTPRequest { acceptsGzip ? gzipRequest : plainRequest }

  static let plainRequest = HTTPRequest(method: .get, target: RequestTarget(segments: ["live"]))
  private static let gzipRequest = HTTPRequest(
    method: .get, target: RequestTarget(segments: ["live"]), fields: .list(["accept-encoding": "gzip"]))

  /// Copying a body once costs less than sending it from several places hundreds of times.
  private static func flat(_ content: HTTP1Response.Content) -> HTTP1Response.Content {
    guard case .pieces(let head, let pieces) = content, pieces.totalLength <= flatBytes else { return content }
    var buffer = ByteBuffer()
    buffer.reserveCapacity(head.readableBytes + pieces.totalLength)
    buffer.writeImmutableBuffer(head)
    for piece in pieces {
      switch piece {
      case .bytes(let bytes): buffer.writeImmutableBuffer(bytes)
      case .file(let range):
        guard range.file.kind == .memory, range.copy(into: &buffer) else { return content }
      }
    }
    return .buffer(buffer)
  }
}

/// A connection that waits for an answer.
protocol ResponseWaiter: AnyObject {
  /// On the connection's loop.
  func take(_ answer: SharedResponse, for waiter: SharedResponse.Waiter)
}
