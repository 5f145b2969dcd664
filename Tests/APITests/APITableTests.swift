@testable import API
@testable import Delivery
@testable import HTTP
import NIOCore
import NIOEmbedded
import NIOHTTP1
import Publishing
import Testing

@Suite struct APITableTests {
  private func path(_ text: String) throws -> [String] { try RequestTarget(parsing: text).segments }

  @Test(arguments: [
    ("/api/v1/streams", "GET, HEAD, OPTIONS"), ("/api/v1/streams/", "GET, HEAD, OPTIONS"),
    ("/api/v1/streams/cam/recording/start", "POST, OPTIONS"), ("/api/v1/streams/cam/capture/keyframe", "POST, OPTIONS"),
    ("/api/v1/recordings/cam/20261121T072410Z.mp4", "GET, HEAD, PUT, DELETE, OPTIONS"),
    ("/api/v1/recordings/cam/20261121T072410Z.mp4/clip", "GET, HEAD, OPTIONS"),
    ("/api/v1/recordings/cam/20261121T072410Z.mp4/protect", "POST, OPTIONS"),
    ("/api/v1/sources/cam/preview.jpg", "GET, HEAD, OPTIONS"), ("/api/v1/sources/cam/preview", "POST, OPTIONS"),
  ])
  func eachAddressSaysWhatItAnswers(target: String, allow: String) throws {
    #expect(try #require(APITable.find(try path(target))).address.methods.description == allow)
  }

  @Test(arguments: [
    "/api/v2", "/api/v1/nothing", "/api/v1/streams/cam/recording", "/api/v1/streams/cam/recording/pause",
    "/api/v1/streams/cam/recording/start/now", "/api/v1/recordings/cam", "/api/v1/sources/cam/start/x",
  ])
  func anythingElseIsNoAddress(target: String) throws {
    #expect(APITable.find(try path(target)) == nil)
    #expect(APITable.unknown(try path(target)).status == .notFound)
  }

  @Test func aWordThatIsNoneOfAFewIsAnsweredWithThem() throws {
    let help = APITable.unknown(try path("/api/v1/streams/cam/recording/pause")).help
    #expect(help == "Use one of start, stop, cancel.")
    #expect(APITable.unknown(try path("/api/v1/nothing")).help == "See /api/v1.")
  }

  /// Of each place with a choice the first word, of the others what they are called.
  private func example(_ route: APIRoute) -> [String] {
    route.pattern.split(separator: "/").map { $0.split(separator: "|").first.map(String.init) ?? "" }
  }

  @Test func eachRouteIsFoundByItsAddressAndMethod() throws {
    for route in APITable.routes {
      let address = try #require(APITable.find(example(route))?.address, "\(route.pattern)")
      #expect(address.pattern == route.pattern)
      #expect(address.routes.count { $0.method == route.method } == 1, "\(route.pattern)")
    }
    let patterns = APITable.routes.map(\.pattern)
    #expect(patterns == patterns.sorted(), "routes of one address stand together")
  }

  /// Otherwise whoever must not watch a stream could ask there.
  @Test func theGateKnowsTheStreamOfEachAddress() {
    for route in APITable.routes {
      let path = route.pattern.split(separator: "/").map { $0 == "{stream}" ? "cam" : String($0) }
      let hasStream = route.pattern.contains("{stream}")
      #expect(ViewerGate.stream(at: path) == (hasStream ? StreamName("cam") : nil), "\(route.pattern)")
    }
  }

  @Test func aPathSaysWhatStandsInItsPlaces() throws {
    #expect(
      try #require(APITable.find(["api", "v1", "streams", "cam", "recording", "stop"])).values == ["cam", "stop"])
    #expect(try #require(APITable.find(["api"])).address.pattern == "/api/v1")
    let request = APIRequest(
      http: HTTPRequest(method: .get, target: RequestTarget(segments: [])), viewer: Viewer(rule: nil), values: ["a"],
      eventLoop: EmbeddedEventLoop())
    #expect(request[0] == "a" && request[1] == "")
  }

  /// Whatever changes something, and whatever tells of the machine.
  @Test func everythingButReadingNeedsTheToken() {
    for route in APITable.routes where route.method != .get {
      #expect([.operate, .admin, .record].contains(route.access), "\(route.pattern)")
    }
    #expect(
      APITable.routes.filter { $0.method == .get && $0.access != .open }.map(\.pattern) == [
        "/api/v1/admin", "/api/v1/devices", "/api/v1/events", "/api/v1/events/deliveries", "/api/v1/keys",
        "/api/v1/sessions",
        "/api/v1/sessions/{session}", "/api/v1/settings", "/api/v1/sources", "/api/v1/sources/{source}",
        "/api/v1/sources/{source}/preview.jpg", "/api/v1/sources/{source}/preview.mp4",
        "/api/v1/streams/{stream}/settings",
      ])
  }

  @Test(arguments: [
    ("/recordings/", "/recordings", true), ("/recordings/?stream=a", "/recordings?stream=a", true),
    ("/watch/cam/?player=hls", "/watch/cam?player=hls", true), ("/watch", "/", false), ("/watch/", "/", false),
    ("/live/cam", "/watch/cam", false), ("/live/cam/", "/watch/cam", false), ("/live", "/", false),
  ])
  func peopleAreSentOn(target: String, place: String, isPermanent: Bool) throws {
    let redirection = try #require(Redirection.place(of: try request(target, accepting: "text/html,*/*;q=0.8")))
    #expect(redirection.address == place)
    #expect((redirection.kind == .permanent) == isPermanent)
  }

  @Test func aQueryThatCouldEndAFieldIsLeftOut() throws {
    let target = RequestTarget(segments: ["recordings"], rawQuery: "a=1\r\nSet-Cookie: x", endsWithSlash: true)
    #expect(Redirection.place(of: HTTPRequest(method: .get, target: target))?.address == "/recordings")
  }

  @Test(arguments: ["/live/cam", "/live/cam/", "/live", "/live/cam/index.m3u8/", "/recordings", "/", "/watch/a%20b/"])
  func playersAndRightAddressesAreNot(target: String) throws {
    #expect(Redirection.place(of: try request(target, accepting: "*/*")) == nil)
  }

  private func request(_ target: String, accepting: String) throws -> HTTPRequest {
    HTTPRequest(
      method: .get, target: try RequestTarget(parsing: target), fields: .list(HTTPHeaders([("Accept", accepting)])))
  }
}
