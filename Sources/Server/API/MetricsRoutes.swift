internal import Ingest
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import Synchronization

/// `/metrics`, `/healthz` and `/readyz`: what watches over the server asks. Open to everybody who may reach the server, as
/// all reading is; no key and no address of a publisher or viewer is in it.
final class MetricsRoutes: Sendable {
  private let report: MetricsReport
  private let clock: SteadyClock
  /// Of its own: neither an event loop nor a thread that may be waiting for a disk puts figures together.
  private let thread = NIOThreadPool(numberOfThreads: 1)
  private let state = Mutex(State())

  private struct State {
    /// Those who wait for the answer that is being put together.
    var waiting: [EventLoopPromise<HTTPResponse>] = []
    var isWorking = false
    var newest: (text: ByteBuffer, at: Int64)?
    /// What the newest took, in nanoseconds.
    var renderTime: Int64?
  }

  init(report: MetricsReport, clock: SteadyClock) {
    self.report = report
    self.clock = clock
    thread.start()
  }

  deinit {
    thread.shutdownGracefully { _ in }
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
    let promise = eventLoop.makePromise(of: HTTPResponse.self)
    let (known, mustWork) = state.withLock { state -> (ByteBuffer?, Bool) in
      if let newest = state.newest, now &- newest.at < Self.shortestInterval { return (newest.text, false) }
      state.waiting.append(promise)
      defer { state.isWorking = true }
      return (nil, !state.isWorking)
    }
    if let known {
      promise.succeed(Self.response(known))
    } else if mustWork {
      thread.submit { _ in self.work() }
    }
    return .later(promise.futureResult)
  }

  private func work() {
    let start = clock.monotonicNanoseconds()
    let text = report.sheet(renderTime: state.withLock { $0.renderTime }).text()
    let end = clock.monotonicNanoseconds()
    let waiting = state.withLock { state in
      state.renderTime = end &- start
      state.newest = (text, end)
      state.isWorking = false
      defer { state.waiting = [] }
      return state.waiting
    }
    for promise in waiting { promise.succeed(Self.response(text)) }
  }

  private static func response(_ text: ByteBuffer) -> HTTPResponse {
    HTTPResponse(
      headers: [
        HeaderField("Content-Type", ContentType.metrics.rawValue),
        HeaderField("Cache-Control", CachePolicy.never.value),
      ], compression: .gzip, body: .pieces([.bytes(text)]))
  }
}
