import Answers
@testable import API
import Base
@testable import Control
@testable import Delivery
import HTTP
import Logging
import NIOCore
import NIOHTTP1
import NIOPosix
import Storage
import Streams
import Support
import Testing

@Suite struct ControlAPITests {
  private let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
  private let loop = MultiThreadedEventLoopGroup.singleton.any()

  private func made(_ body: String, _ api: ControlAPI) async throws -> KeyAnswer {
    let request = HTTPRequest(
      method: .post, target: try RequestTarget(parsing: "/api/v1/keys"), body: ByteBuffer(string: body))
    let answer = api.addKey(APIRequest(http: request, viewer: Viewer(rule: nil), values: [], eventLoop: loop))
    let response = try await answer.response(on: loop).get()
    #expect(response.status == .ok)
    guard case .pieces(let pieces) = response.body, case .bytes(let bytes)? = pieces.first else {
      throw ValueError("no body", advice: "")
    }
    return try JSONText.decode(KeyAnswer.self, from: bytes)
  }

  @Test func theFirstKeySaysThatItClosesTheServer() async throws {
    let folder = try TemporaryFolder()
    let authorizer = Authorizer(clock: .system())
    let events = EventLog(clock: .system(), logger: logger)
    let database = try ControlDatabase(folder: folder.path)
    defer { withExtendedLifetime(folder) { database.close() } }
    let api = ControlAPI(
      authorizer: authorizer,
      streams: StreamRegistry(settings: { _ in StreamSettings() }, clock: .system(), logger: logger) { _, _, _, _ in []
      },
      database: database, settings: SettingsHolder(), events: events, clock: .system(), logger: logger)
    func closings() -> [Event] { events.newest(9).events.filter { $0.kind == .accessClosed } }

    #expect(try await made(#"{"name":"family","watch":["*"]}"#, api).note == nil, "it is for viewers")
    #expect(!authorizer.isClosed && closings().isEmpty)
    let first = try await made(#"{"name":"laptop","publish":["cam-*"]}"#, api)
    #expect(first.note == Authorizer.closed && authorizer.isClosed)
    #expect(closings().map(\.data) == [#"{"key":"laptop"}"#])
    #expect(try await made(#"{"name":"desk","publish":["*"]}"#, api).note == nil, "it was closed already")
    #expect(closings().count == 1)
  }
}
