internal import Basics
internal import HTTP
internal import Ingest
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import Storage
internal import Synchronization

/// `/metrics`, `/healthz` and `/readyz`: what watches over the server asks. Open to everybody who may reach the server, as
/// all reading is; no key and no address of a publisher or viewer is in it.
final class MetricsRoutes: Sendable {
  private let report: MetricsReport
  private let clock: SteadyClock
  private let flight: SingleFlight<Int, ByteBuffer>
  private let state = Mutex(State())

  private struct State {
    var newest: (text: ByteBuffer, at: Int64)?
    /// What the newest took, in nanoseconds.
    var renderTime: Int64?
  }

  /// - Parameter pool: neither an event loop nor a thread that may be waiting for a disk puts figures together.
  init(report: MetricsReport, clock: SteadyClock, pool: NIOThreadPool) {
    self.report = report
    self.clock = clock
    flight = SingleFlight(limit: 1, on: pool)
  }

  /// An answer is given again to those who ask within so many nanoseconds, so that asking without pause costs a few
  /// percent of one processor at most.
  private static let shortestInterval: Int64 = 200_000_000

  var health: HTTPResponse { .text("ok\n", cache: .never) }

  /// 503 once no more publishers are admitted: whoever distributes them takes another server then.
  var readiness: HTTPResponse {
    report.streams.isOpen
      ? .text("ready\n", cache: .never) : .text("stopping\n", status: .serviceUnavailable, cache: .never)
  }

  /// Who comes while an answer is put together gets that one, and so does who comes right after it.
  func metrics(on eventLoop: any EventLoop) -> HTTPAnswer {
    let now = clock.monotonicNanoseconds()
    if let newest = state.withLock({ $0.newest }), now &- newest.at < Self.shortestInterval {
      return .now(Self.response(newest.text))
    }
    guard let text = flight.value(of: 0, on: eventLoop, make: { self.text() }) else {
      return .now(StandardResponse.failed)
    }
    return .later(text.map { Self.response($0) })
  }

  private func text() -> ByteBuffer {
    let start = clock.monotonicNanoseconds()
    let text = report.sheet(renderTime: state.withLock { $0.renderTime }).text()
    let end = clock.monotonicNanoseconds()
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
