internal import Answers
internal import AsyncHTTPClient
internal import Base
internal import HTTP
internal import NIOCore
internal import NIOHTTP1

/// Requests to the running server over its control socket (`ControlSocket`).
struct ControlClient {
  /// Why a request failed, in one line.
  struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  let path: String

  private static let longestAnswer = 64 << 20
  private static let patience = TimeAmount.seconds(60)

  /// Finds the server.
  ///
  /// - Parameter chosen: the path of its socket; nil for the standard ones.
  init(_ chosen: String?, environment: [String: String]) throws(Failure) {
    let paths = chosen.map { [$0] } ?? ControlSocket.standardPaths(environment)
    var failures: [String] = []
    for path in paths {
      guard let failure = ControlSocket.probe(path) else {
        self.path = path
        return
      }
      failures.append("\(LogText.escaped(path)): \(failure.description)")
    }
    let advice =
      if let chosen {
        "start weir serve with --control \(LogText.escaped(chosen)), or name another path"
      } else if ControlSocket.standardPath(environment) == nil {
        // Without one of these folders a server of this user listens nowhere.
        "start weir serve with --control PATH, and set WEIR_CONTROL to the same path"
      } else {
        "start weir serve as this user, or name its socket with --control PATH or WEIR_CONTROL"
      }
    throw Failure(description: "no server answers (\(failures.joined(separator: "; "))); \(advice)")
  }

  private func request(_ target: String, _ method: HTTPMethod) -> HTTPClientRequest {
    var request = HTTPClientRequest(url: "http+unix://\(Self.escaped(path))\(target)")
    request.method = method
    request.headers.add(name: "Host", value: Version.name)
    return request
  }

  /// The body of a successful response. `target` is a path with a query; `content` is JSON.
  func send(
    _ target: String, _ method: HTTPMethod = .GET, content: ByteBuffer? = nil
  ) async throws(Failure) -> ByteBuffer {
    var request = request(target, method)
    if let content {
      request.headers.add(name: "Content-Type", value: ContentType.json.rawValue)
      request.body = .bytes(content)
    }
    let status: HTTPResponseStatus
    let body: ByteBuffer
    do {
      let response = try await HTTPClient.shared.execute(request, timeout: Self.patience)
      status = response.status
      body = try await response.body.collect(upTo: Self.longestAnswer)
    } catch {
      throw Failure(description: "the server at \(LogText.escaped(path)) does not answer: \(error)")
    }
    guard status.code < 400 else { throw Self.failure(status, body) }
    return body
  }

  /// Whether more messages are wanted.
  enum Demand {
    case more, enough
  }

  /// Gives the messages of an endless response (server-sent events) to `take`, until it has enough, or the server ends it.
  /// Returns the last demand.
  func follow(_ target: String, _ take: (ServerSentEvents.Message) throws -> Demand) async throws -> Demand {
    var request = request(target, .GET)
    request.headers.add(name: "Accept", value: "text/event-stream")
    let response: HTTPClientResponse
    do {
      response = try await HTTPClient.shared.execute(request, deadline: .distantFuture)
      guard response.status.code < 400 else {
        throw Self.failure(response.status, try await response.body.collect(upTo: Self.longestAnswer))
      }
    } catch let failure as Failure {
      throw failure
    } catch {
      throw Failure(description: "the server at \(LogText.escaped(path)) does not answer: \(error)")
    }
    var events = ServerSentEvents()
    for try await piece in response.body {
      for message in try events.read(piece) where try take(message) == .enough { return .enough }
    }
    return .more
  }

  /// The answer to a request, and its text.
  func ask<Answer: Decodable>(
    _ target: String, _ method: HTTPMethod = .GET, content: ByteBuffer? = nil, for type: Answer.Type = Answer.self
  ) async throws(Failure) -> Answer {
    let body = try await send(target, method, content: content)
    guard let answer = JSONText.decode(type, body) else {
      throw Failure(
        description: "the server at \(LogText.escaped(path)) is of another version: its answer cannot be read")
    }
    return answer
  }

  /// A text as one segment of a path, or one value of a query (RFC 3986 §2.3).
  static func escaped(_ text: String) -> String {
    text.utf8.map { byte in
      let isPlain = byte < 0x80 && (Character(UnicodeScalar(byte)).isLetter || Character(UnicodeScalar(byte)).isNumber)
      if isPlain || "-._~".utf8.contains(byte) { return String(UnicodeScalar(byte)) }
      let digits = String(byte, radix: 16, uppercase: true)
      return "%" + (digits.utf8.count < 2 ? "0" : "") + digits
    }.joined()
  }

  private struct ProblemText: Decodable {
    let detail: String
    let help: String?
  }

  private static func failure(_ status: HTTPResponseStatus, _ body: ByteBuffer) -> Failure {
    guard let problem = JSONText.decode(ProblemText.self, body) else {
      return Failure(description: "the server responded with status \(status.code)")
    }
    return Failure(description: ([problem.detail] + (problem.help.map { [$0] } ?? [])).joined(separator: " "))
  }
}
