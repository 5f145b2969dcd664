internal import AsyncHTTPClient
internal import Basics
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix

/// The address of a key set. One request, without redirections, is answered within a time and a size, or fails.
struct JSONWebKeySetAddress: Sendable, Hashable {
  static let patience = Duration.seconds(5)

  private let url: String

  /// An https address, or an http address of this machine. Nil for a file's name.
  init?(parsing text: String) throws(ValueError) {
    guard text.contains("://") else { return nil }
    let isOfThisMachine = ["http://127.0.0.1", "http://[::1]", "http://localhost"].contains { host in
      guard text.hasPrefix(host) else { return false }
      return text.dropFirst(host.count).first.map { [":", "/"].contains($0) } ?? true
    }
    guard text.hasPrefix("https://") || isOfThisMachine else {
      throw ValueError("that is no https address", advice: "write https://issuer.example/jwks.json, or name a file")
    }
    guard (try? HTTPClient.Request(url: text)) != nil, !text.contains("@") else {
      throw ValueError("that is no usable address", advice: "write https://issuer.example/jwks.json")
    }
    url = text
  }

  func fetch() async throws(ValueError) -> [JSONWebKey] {
    let text: [UInt8]
    do {
      text = try await bytes()
    } catch let error as ValueError {
      throw error
    } catch {
      throw ValueError("the request failed: \(error)", advice: "check the address and the network")
    }
    return try JSONWebKeySet.keys(in: text)
  }

  private func bytes() async throws -> [UInt8] {
    var configuration = HTTPClient.Configuration(
      redirectConfiguration: .disallow, timeout: .init(connect: .seconds(5), read: .seconds(5)))
    configuration.httpVersion = .http1Only
    let client = HTTPClient(eventLoopGroup: NIOSingletons.posixEventLoopGroup, configuration: configuration)
    let result: Result<[UInt8], any Error>
    do { result = .success(try await Self.bounded { try await request(client) }) } catch { result = .failure(error) }
    try? await client.shutdown()
    return try result.get()
  }

  private func request(_ client: HTTPClient) async throws -> [UInt8] {
    let response = try await client.execute(HTTPClientRequest(url: url), timeout: .seconds(5))
    guard response.status == .ok else {
      throw ValueError("the status is \(response.status.code)", advice: "name the address that has the set itself")
    }
    return Array(buffer: try await response.body.collect(upTo: JSONWebKeySet.bytes))
  }

  /// Ends what takes longer than `patience`, for example a body without an end.
  private static func bounded(_ work: @escaping @Sendable () async throws -> [UInt8]) async throws -> [UInt8] {
    try await withThrowingTaskGroup(of: [UInt8].self) { group in
      group.addTask(operation: work)
      group.addTask {
        try await Task.sleep(for: patience)
        throw ValueError("it takes longer than \(DurationText.text(patience))", advice: "check the address")
      }
      defer { group.cancelAll() }
      return try await group.next() ?? []
    }
  }
}
