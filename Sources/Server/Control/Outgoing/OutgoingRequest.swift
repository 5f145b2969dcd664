internal import AsyncHTTPClient
package import Base
package import NIOCore
package import NIOHTTP1
internal import NIOPosix

/// A request of this server to another one: of a webhook, a callback, or for keys. It goes to the given address alone:
/// redirections are not followed. Its answer is bounded in time and size.
package struct OutgoingRequest: Sendable {
  var method = HTTPMethod.GET
  package var url: String
  var fields: [(name: String, value: String)] = []
  var body: ByteBuffer?
  /// For the whole of it, from the connection to the end of the answer.
  package var patience = Duration.seconds(5)

  package init(
    method: HTTPMethod = .GET, url: String, fields: [(name: String, value: String)] = [],
    body: ByteBuffer? = nil, patience: Duration = Duration.seconds(5)
  ) {
    (self.method, self.url, self.fields, self.body, self.patience) = (method, url, fields, body, patience)
  }

  /// The most bytes of an answer.
  static let longestAnswer = 64 << 10

  package struct Answer: Sendable {
    package let status: Int
    /// Nil if it is longer than `longestAnswer`, or did not end in time.
    let body: ByteBuffer?
  }

  /// Why there is no answer. The text has nothing of the address, which may hold a token.
  package struct Failure: Error, CustomStringConvertible {
    package let description: String
  }

  private static let client: HTTPClient = {
    var configuration = HTTPClient.Configuration(redirectConfiguration: .disallow)
    configuration.connectionPool.idleTimeout = .seconds(30)
    configuration.connectionPool.retryConnectionEstablishment = false
    configuration.decompression = .disabled
    configuration.httpVersion = .http1Only
    return HTTPClient(eventLoopGroup: NIOSingletons.posixEventLoopGroup, configuration: configuration)
  }()

  /// Checks an address: http or https, without a name and password in it.
  package static func check(_ url: String) throws(ValueError) {
    guard ["http://", "https://"].contains(where: url.hasPrefix), (try? HTTPClient.Request(url: url)) != nil,
      !url.contains("@")
    else { throw ValueError("that is no usable address", advice: "write https://host.example/path") }
  }

  /// Waits for the answer, at most for `patience`.
  package func send() async throws(Failure) -> Answer {
    var request = HTTPClientRequest(url: url)
    request.method = method
    request.headers.add(name: "User-Agent", value: Version.name)
    for field in fields { request.headers.add(name: field.name, value: field.value) }
    if let body { request.body = .bytes(body) }
    let deadline = NIODeadline.now() + TimeAmount(patience)
    let late = Failure(description: "no answer within \(DurationText.text(patience))")
    switch await HostNames.system.look(up: host, until: deadline) {
    case .found: break
    case .unknown(let reason): throw Failure(description: "no connection: \(reason)")
    case .late: throw late
    }
    do {
      let response = try await Self.client.execute(request, deadline: deadline)
      // Without a connection to it, the next request's look could hold up others on its loop.
      if Self.isKept(response) { HostNames.system.note(host) } else { HostNames.system.forget(host) }
      return Answer(status: Int(response.status.code), body: await Self.read(response.body, until: deadline))
    } catch let error as HTTPClientError where error == .deadlineExceeded {
      HostNames.system.forget(host)
      throw late
    } catch {
      HostNames.system.forget(host)
      throw Failure(description: Self.text(error))
    }
  }

  /// Whether the client keeps the connection for the next request.
  static func isKept(_ response: HTTPClientResponse) -> Bool {
    response.version == .http1_1
      && !response.headers[canonicalForm: "connection"].contains { $0.lowercased() == "close" }
  }

  /// The host of the address, without the brackets of an IPv6 address.
  private var host: String {
    let host = (try? HTTPClient.Request(url: url))?.host ?? ""
    return host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
  }

  /// The deadline of the client is for the head alone.
  private static func read(_ body: HTTPClientResponse.Body, until deadline: NIODeadline) async -> ByteBuffer? {
    await withTaskGroup(of: ByteBuffer?.self) { group in
      group.addTask { try? await body.collect(upTo: longestAnswer) }
      group.addTask {
        try? await Task.sleep(for: .nanoseconds(max(0, (deadline - .now()).nanoseconds)))
        return nil
      }
      defer { group.cancelAll() }
      return await group.next() ?? nil
    }
  }

  private static func text(_ error: any Error) -> String {
    switch error {
    case let error as HTTPClientError: error.shortDescription
    case let error as NIOConnectionError:
      "no connection: \(error.connectionErrors.first.map { "\($0.error)" } ?? "the name is not known")"
    default: String("\(error)".prefix(200))
    }
  }
}
