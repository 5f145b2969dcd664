internal import AsyncHTTPClient
internal import FMP4
internal import Ingest
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import Synchronization

/// Sends events by HTTP POST, after Standard Webhooks 1.0.0. It follows no redirection, reads at most 64 KiB of an answer, and waits
/// at most five seconds for all of it.
final class WebhookClient: Sendable {
  private static let patience = TimeAmount.seconds(5)
  private static let longestAnswer = 64 << 10

  /// Made with the first request, so that a server that does not come to run has none to end.
  private let state = Mutex<State>(.unused)

  private enum State: Sendable {
    case unused
    case open(HTTPClient)
    case over
  }

  /// Nil when the server stops.
  private var client: HTTPClient? {
    state.withLock { state in
      switch state {
      case .over: return nil
      case .open(let client): return client
      case .unused:
        let client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: Self.configuration)
        state = .open(client)
        return client
      }
    }
  }

  private static var configuration: HTTPClient.Configuration {
    var configuration = HTTPClient.Configuration()
    configuration.redirectConfiguration = .disallow
    configuration.timeout = .init(connect: patience, read: patience)
    configuration.connectionPool.idleTimeout = .seconds(30)
    configuration.connectionPool.retryConnectionEstablishment = false
    configuration.decompression = .disabled
    configuration.httpVersion = .http1Only
    return configuration
  }

  func stop() async {
    let before = state.withLock { state in
      defer { state = .over }
      return state
    }
    if case .open(let client) = before { try? await client.shutdown() }
  }

  func post(_ event: Event, to url: String, _ secret: WebhookSecret?, now: WallTime) async -> HookOutcome {
    var request = HTTPClientRequest(url: url)
    request.method = .POST
    let (id, body) = ("evt_\(event.id)", event.json)
    request.headers = [
      "Content-Type": "application/json", "User-Agent": "weir", "webhook-id": id, "webhook-timestamp": "\(now.seconds)",
    ]
    if let secret {
      request.headers.add(
        name: "webhook-signature", value: secret.signature(id: id, seconds: now.seconds, body: body))
    }
    request.body = .bytes(ByteBuffer(string: body))
    guard let client else { return .interrupted }
    do {
      let deadline = NIODeadline.now() + Self.patience
      let response = try await client.execute(request, deadline: deadline)
      await Self.drop(response.body, until: deadline)
      let code = response.status.code
      if (200..<300).contains(code) { return .done("\(code)") }
      return .failed((300..<400).contains(code) ? "\(code), and redirections are not followed" : "\(code)")
    } catch is CancellationError {
      return .interrupted
    } catch let error as HTTPClientError
      where error == .deadlineExceeded || error == .readTimeout || error == .connectTimeout
    {
      return .failed("no answer within 5 s")
    } catch let error as HTTPClientError where error == .cancelled || error == .alreadyShutdown {
      return .interrupted
    } catch {
      // The address may hold a token, so only the kind of error is told.
      return .failed(Self.text(error))
    }
  }

  /// Reads the answer, so that its connection can be used again. What it says is not needed.
  private static func drop(_ body: HTTPClientResponse.Body, until deadline: NIODeadline) async {
    await withTaskGroup(of: Void.self) { group in
      group.addTask { _ = try? await body.collect(upTo: longestAnswer) }
      group.addTask {
        try? await Task.sleep(for: .nanoseconds(max(0, (deadline - NIODeadline.now()).nanoseconds)))
      }
      _ = await group.next()
      group.cancelAll()
    }
  }

  private static func text(_ error: any Error) -> String {
    if let error = error as? HTTPClientError { return error.shortDescription }
    if let error = error as? NIOConnectionError {
      let reason = error.connectionErrors.first.map { "\($0.error)" }
      return "no connection: \(reason ?? "the name is not known")"
    }
    return String("\(error)".prefix(200))
  }
}
