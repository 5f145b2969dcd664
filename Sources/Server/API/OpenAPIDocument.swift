internal import Answers
internal import Base
internal import Control
internal import Delivery
internal import HTTP
internal import NIOCore
internal import NIOHTTP1

/// The description of the API (OpenAPI 3.1), made from `APITable.routes`.
package enum OpenAPIDocument {
  /// As `/api/v1/openapi.json` serves it and `weir openapi` prints it.
  package static let text: String = JSONTree.object(root).text(depth: 0) + "\n"

  static let response = HTTPResponse(PreencodedResponse(type: .json, cache: .page, body: ByteBuffer(string: text)))

  private static var root: [(String, JSONTree)] {
    let book = SchemaBook()
    let paths = paths(book)
    let schemas = book.schemas.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    return [
      ("openapi", .text("3.1.0")),
      (
        "info",
        .object([
          ("title", .text("weir")), ("version", .text(Version.number)),
          (
            "description", .text("The API of weir, a live streaming server. Unknown values are null; times are in UTC.")
          ),
          (
            "license",
            .object([("name", .text("Apache License 2.0")), ("identifier", .text("Apache-2.0"))])
          ),
        ])
      ),
      ("servers", .list([.object([("url", .text("/"))])])),
      ("paths", .object(paths)),
      (
        "components",
        .object([
          ("schemas", .object(schemas + [("Problem", problem)])), ("responses", .object(sharedResponses)),
          (
            "securitySchemes",
            .object([
              (
                "adminToken",
                .object([
                  ("type", .text("http")), ("scheme", .text("bearer")),
                  (
                    "description",
                    .text(
                      "The admin token of the server (--admin-token, WEIR_ADMIN_TOKEN), or a key with the scope `x-scope`."
                    )
                  ),
                ])
              )
            ])
          ),
        ])
      ),
    ]
  }

  // MARK: Operations

  private static func paths(_ book: SchemaBook) -> [(String, JSONTree)] {
    var paths: [(path: String, operations: [(String, JSONTree)])] = []
    for route in APITable.routes {
      for path in addresses(of: route.pattern) {
        let operation = (method(of: route), JSONTree.object(operation(route, path, book)))
        if let index = paths.firstIndex(where: { $0.path == path }) {
          paths[index].operations.append(operation)
        } else {
          paths.append((path, [operation]))
        }
      }
    }
    return paths.map { ($0.path, .object($0.operations)) }
  }

  /// One address for each word of `start|stop`.
  static func addresses(of pattern: String) -> [String] {
    pattern.split(separator: "/").reduce([""]) { paths, segment in
      paths.flatMap { path in segment.split(separator: "|").map { "\(path)/\($0)" } }
    }
  }

  static func method(of route: APIRoute) -> String {
    switch route.method {
    case .post: "post"
    case .delete: "delete"
    case .put: "put"
    default: "get"
    }
  }

  private static func operation(_ route: APIRoute, _ path: String, _ book: SchemaBook) -> [(String, JSONTree)] {
    let segments = path.split(separator: "/").dropFirst(2).map { $0.filter { $0.isLetter } }
    let parts = ([method(of: route)] + segments).enumerated().map {
      $0.offset == 0 ? $0.element : capitalised($0.element)
    }
    var members: [(String, JSONTree)] = [
      ("operationId", .text(segments.isEmpty ? "getIndex" : parts.joined())), ("summary", .text(route.summary)),
      ("tags", .list([.text(segments.first.map { String($0) } ?? "api")])),
      (
        "security",
        .list(route.access != .open ? [.object([("adminToken", .list([]))])] : [])
      ),
    ]
    // OpenAPI has scopes for OAuth alone.
    if let scope = route.access.scope { members.append(("x-scope", .text(scope.rawValue))) }
    let parameters = places(in: path) + route.query.map(parameter)
    if !parameters.isEmpty { members.append(("parameters", .list(parameters))) }
    if let body = route.body { members.append(("requestBody", requestBody(body, book))) }
    members.append(("responses", .object(responses(of: route, book))))
    return members
  }

  private static func capitalised(_ text: some StringProtocol) -> String {
    text.prefix(1).uppercased() + text.dropFirst()
  }

  private static func places(in path: String) -> [JSONTree] {
    path.split(separator: "/").filter { $0.hasPrefix("{") }.compactMap { segment in
      APIPlace.all.first { segment == "{\($0.name)}" }.map { place in
        .object([
          ("name", .text(place.name)), ("in", .text("path")), ("required", .word("true")),
          ("description", .text(place.meaning)),
          ("schema", .object([("type", .text("string")), ("pattern", .text(place.pattern))])),
        ])
      }
    }
  }

  private static func parameter(_ parameter: APIParameter) -> JSONTree {
    .object([
      ("name", .text(parameter.name)), ("in", .text(parameter.place.rawValue)),
      ("description", .text(parameter.meaning)),
      ("schema", parameter.schema),
    ])
  }

  private static func requestBody(_ body: APIBody, _ book: SchemaBook) -> JSONTree {
    switch body {
    case .json(let type): .object([("content", content(.json, book.schema(of: type)))])
    case .text(let meaning, let example):
      .object([
        ("description", .text(meaning)),
        (
          "content",
          .object([
            (
              "text/plain",
              .object([("schema", .object([("type", .text("string"))])), ("example", .text(example))])
            )
          ])
        ),
      ])
    case .entry(let meaning, let example):
      .object([
        ("description", .text(meaning)),
        (
          "content",
          .object(
            [(ContentType.json.rawValue, "object"), ("application/yaml", "string")].map { type, kind in
              (type, .object([("schema", .object([("type", .text(kind))]))]))
            })
        ),
        ("x-example", .text(example)),
      ])
    }
  }

  // MARK: Responses

  private static func responses(of route: APIRoute, _ book: SchemaBook) -> [(String, JSONTree)] {
    var answer: [(String, JSONTree)] = [("description", .text(capitalised(route.summary) + "."))]
    if let content = content(of: route.result, book) { answer.append(("content", content)) }
    let success = JSONTree.object(answer)
    let own = kinds(of: route)
    let refusals = Set((own + shared).map(\.status.code)).sorted().map { status -> (String, JSONTree) in
      let ofRoute = own.filter { $0.status.code == status }
      let ofAll = shared.filter { $0.status.code == status }
      return ofRoute.isEmpty
        ? ("\(status)", .object([("$ref", .text("#/components/responses/\(status)"))]))
        : ("\(status)", response(ofRoute + ofAll))
    }
    if case .nothing = route.result { return [("204", success)] + refusals }
    guard case .state = route.result else { return [("200", success)] + refusals }
    return [("200", success), ("202", pending(route, book))] + refusals
  }

  private static func pending(_ route: APIRoute, _ book: SchemaBook) -> JSONTree {
    .object([
      ("description", .text("The state is not reached yet; this is the present one.")),
      (
        "headers",
        .object([
          (
            "Location",
            .object([
              ("description", .text("The address that tells the state.")), ("required", .word("true")),
              ("schema", .object([("type", .text("string"))])),
            ])
          )
        ])
      ),
      ("content", content(of: route.result, book) ?? .object([])),
    ])
  }

  /// The causes of refusals of a route, without those that every route shares.
  static func kinds(of route: APIRoute) -> [ProblemKind] {
    let access: [ProblemKind] =
      route.access != .open
      ? [.readOnly, .otherOrigin, .tokenMissing, .tokenWrong, .tooManyWrongTokens, .scopeTooSmall] : []
    return access + (route.takesBody ? [.bodyTooLarge] : []) + route.problems
  }

  /// The causes that can refuse any request.
  static let shared: [ProblemKind] = [
    .malformedRequest, .malformedAddress, .nothingHere, .noSuchAddress, .methodNotAllowed, .bodyNotAllowed,
    .addressTooLong, .expectationFailed, .tooManyWaiting, .fieldsTooLarge, .failed, .serverFull, .versionNotSupported,
    .hostNotAllowed,
  ]

  private static var sharedResponses: [(String, JSONTree)] {
    Set(shared.map(\.status.code)).sorted().map { status in
      ("\(status)", response(shared.filter { $0.status.code == status }))
    }
  }

  private static func response(_ kinds: [ProblemKind]) -> JSONTree {
    let code = JSONTree.object([
      ("properties", .object([("code", .object([("enum", .list(kinds.map { .text($0.code) }))]))]))
    ])
    return .object([
      ("description", .text(kinds.map { "`\($0.code)`: \($0.meaning)" }.joined(separator: " "))),
      ("content", content(.problem, .object([("allOf", .list([SchemaBook.reference("Problem"), code]))]))),
    ])
  }

  private static func content(_ type: ContentType, _ schema: JSONTree) -> JSONTree {
    .object([(type.rawValue, .object([("schema", schema)]))])
  }

  private static func content(of result: APIResult, _ book: SchemaBook) -> JSONTree? {
    switch result {
    case .json(let type), .state(let type): content(.json, book.schema(of: type))
    case .jsonOrEvents(let type):
      .object([
        (ContentType.json.rawValue, .object([("schema", book.schema(of: type))])),
        ("text/event-stream", .object([("schema", .object([("type", .text("string"))]))])),
      ])
    case .document: content(.json, .object([("type", .text("object"))]))
    case .bytes(let type): .object([(type.rawValue, .object([]))])
    case .nothing: nil
    }
  }

  /// RFC 9457, with a code and help. `x-codes` lists all codes, for docs/http.md.
  private static var problem: JSONTree {
    let text = JSONTree.object([("type", .text("string"))])
    func member(_ type: String, _ description: String) -> JSONTree {
      .object([("type", .text(type)), ("description", .text(description))])
    }
    return .object([
      ("type", .text("object")),
      ("required", .list(["type", "status", "code", "title", "detail"].map(JSONTree.text))),
      (
        "properties",
        .object([
          ("type", text), ("status", member("integer", "The status of the response.")),
          ("code", member("string", "The cause, for programs: it never changes.")),
          ("title", member("string", "What failed.")), ("detail", member("string", "With which value, and why.")),
          ("help", member("string", "What to do.")),
        ])
      ),
      (
        "x-codes",
        .list(
          ProblemKind.all.map { kind in
            .object([
              ("code", .text(kind.code)), ("status", .word("\(kind.status.code)")), ("meaning", .text(kind.meaning)),
            ])
          })
      ),
    ])
  }
}
