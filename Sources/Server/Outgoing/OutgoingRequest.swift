internal import AsyncHTTPClient
internal import Basics
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix

/// A request of this server to another one. It goes to the given address alone: redirections are not followed. Its answer is
/// bounded in time and size.
struct OutgoingRequest: Sendable {
  var method = HTTPMethod.GET
  var url: String
  var fields: [(name: String, value: String)] = []
  var body: ByteBuffer?
  /// For the whole of it, from the connection to the end of the answer.
  var patience = Duration.seconds(5)

  /// The most bytes of an answer.
  static let longestAnswer = 64 << 10

  struct Answer: Sendable {
    let status: Int
    let body: ByteBuffer
  }

  /// Why there is no answer. The text has nothing of the address, which may hold a token.
  struct Failure: Error, CustomStringConvertible {
    let description: String
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
  static func check(_ url: String) throws(ValueError) {
    guard ["http://", "https://"].contains(where: url.hasPrefix), (try? HTTPClient.Request(url: url)) != nil,
      !url.contains("@")
    else { throw ValueError("that is no usable address", advice: "write https://host.example/path") }
  }

  func send() async throws(Failure) -> Answer {
    do {
      return try await withThrowingTaskGroup(of: Answer.self) { group in
        group.addTask { try await perform() }
        group.addTask {
          try await Task.sleep(for: patience)
          throw Failure(description: "no answer within \(DurationText.text(patience))")
        }
        defer { group.cancelAll() }
        guard let answer = try await group.next() else { throw CancellationError() }
        return answer
      }
    } catch let failure as Failure {
      throw failure
    } catch {
      throw Failure(description: Self.text(error))
    }
  }

  private func perform() async throws -> Answer {
    var request = HTTPClientRequest(url: url)
    request.method = method
    request.headers.add(name: "User-Agent", value: Version.name)
    for field in fields { request.headers.add(name: field.name, value: field.value) }
    if let body { request.body = .bytes(body) }
    let response = try await Self.client.execute(request, deadline: .now() + TimeAmount(patience))
    return Answer(
      status: Int(response.status.code), body: try await response.body.collect(upTo: Self.longestAnswer))
  }

  private static func text(_ error: any Error) -> String {
    switch error {
    case let error as HTTPClientError: error.shortDescription
    case let error as NIOConnectionError:
      "no connection: \(error.connectionErrors.first.map { "\($0.error)" } ?? "the name is not known")"
    case is NIOTooManyBytesError: "the answer has more than \(longestAnswer >> 10) KiB"
    default: String("\(error)".prefix(200))
    }
  }
}
