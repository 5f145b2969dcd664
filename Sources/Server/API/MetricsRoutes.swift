package import Base
internal import HTTP
internal import NIOCore
internal import NIOHTTP1
internal import Storage
internal import Streams
internal import Synchronization

/// `/metrics`, `/healthz` and `/readyz` for monitoring. Open to every client, as all reading is. They contain no key and no
/// address of a publisher or viewer.
package final class MetricsRoutes: Sendable {
  private let report: MetricsReport
  private let clock: SteadyClock
  private let flight: SingleFlight<Int, ByteBuffer>
  private let state = Mutex(State())

  private struct State {
    var newest: (text: ByteBuffer, at: MonotonicTime)?
    /// Nanoseconds that the newest report took.
    var renderTime: Int64?
  }

  /// - Parameter pool: makes the reports, since an event loop must not, and a disk thread may be blocked.
  package init(report: MetricsReport, clock: SteadyClock, pool: any WorkThreads) {
    self.report = report
    self.clock = clock
    flight = SingleFlight(limit: 1, on: pool)
  }

  /// Nanoseconds for which a report is reused. Clients that request it without pause then cost a few percent of one processor at
  /// most.
  private static let shortestInterval: Int64 = 200_000_000

  var health: HTTPResponse { .text("ok\n", cache: .never) }

  /// 503 once no more publishers are admitted, so that a load balancer chooses another server.
  var readiness: HTTPResponse {
    report.streams.isOpen
      ? .text("ready\n", cache: .never) : .text("stopping\n", status: .serviceUnavailable, cache: .never)
  }

  /// Requests during and shortly after the making of a report get that report.
  func metrics(on eventLoop: any EventLoop) -> HTTPAnswer {
    let now = clock.monotonic()
    if let newest = state.withLock({ $0.newest }), now &- newest.at < Self.shortestInterval {
      return .now(Self.response(newest.text))
    }
    guard let text = flight.value(of: 0, on: eventLoop, make: { self.text() }) else {
      return .now(StandardResponse.failed)
    }
    return .later(text.map { Self.response($0) })
  }

  private func text() -> ByteBuffer {
    let start = clock.monotonic()
    let text = report.sheet(renderTime: state.withLock { $0.renderTime }).text()
    let end = clock.monotonic()
    state.withLock { state in
      state.renderTime = end &- start
      state.newest = (text, end)
    }
    return text
  }

  private static func response(_ text: ByteBuffer) -> HTTPResponse {
    HTTPResponse(
      headers: [
        HeaderField("Content-Type", ContentType.metrics.rawValue),
        HeaderField("Cache-Control", CachePolicy.never.value),
      ], compression: .gzip, body: .pieces([.bytes(text)]))
  }
}
