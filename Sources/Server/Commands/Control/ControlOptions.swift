internal import Answers
internal import API
internal import ArgumentParser
internal import NIOCore
internal import NIOHTTP1

/// The options of all commands to the running server.
struct ControlOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Unix socket of the server (default /run/weir/weir.sock or $XDG_RUNTIME_DIR/weir.sock; WEIR_CONTROL).",
      valueName: "path")) var control: String?
  @Flag(help: "Print what the API answers, as JSON.") var json = false

  func client() throws -> ControlClient {
    let environment = Arguments.environment()
    return try ControlClient(control ?? environment["WEIR_CONTROL"], environment: environment)
  }

  /// Sends a request and prints its answer: as JSON, or as `text` makes it.
  func run<Answer: Decodable>(
    _ target: String, _ method: HTTPMethod = .GET, content: ByteBuffer? = nil, for type: Answer.Type = Answer.self,
    text: (Answer) -> String
  ) async throws {
    let client = try client()
    if json {
      print(String(buffer: try await client.send(target, method, content: content)))
    } else {
      print(text(try await client.ask(target, method, content: content, for: type)), terminator: "")
    }
  }

  /// Gets all pages of a list, and prints them as one.
  ///
  /// - Parameter target: a path with a query.
  func runPages<Page: PagedAnswer>(_ target: String, for type: Page.Type, text: (Page) -> String) async throws {
    let client = try client()
    let target = "\(target)\(target.contains("?") ? "&" : "?")limit=\(ListPage.longest)"
    var all = try await client.ask(target, for: type)
    while let next = all.next {
      all.append(try await client.ask("\(target)&after=\(ControlClient.escaped(next))", for: type))
    }
    if json { print(String(buffer: JSONText.encode(all))) } else { print(text(all), terminator: "") }
  }
}
