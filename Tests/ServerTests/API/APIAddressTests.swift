import NIOHTTP1
import Testing

@testable import Server

@Suite struct APIAddressTests {
  private func path(_ text: String) throws -> [String] { try RequestTarget(parsing: text).segments }

  @Test(arguments: [
    ("/api/v1/streams", "GET, HEAD, OPTIONS"), ("/api/v1/streams/", "GET, HEAD, OPTIONS"),
    ("/api/v1/streams/cam/recording/start", "POST, OPTIONS"), ("/api/v1/streams/cam/capture/keyframe", "POST, OPTIONS"),
    ("/api/v1/recordings/cam/20261121T072410Z.mp4", "GET, HEAD, DELETE, OPTIONS"),
    ("/api/v1/recordings/cam/20261121T072410Z.mp4/clip", "GET, HEAD, OPTIONS"),
    ("/api/v1/recordings/cam/20261121T072410Z.mp4/protect", "POST, OPTIONS"),
    ("/api/v1/sources/cam/preview.jpg", "GET, HEAD, OPTIONS"), ("/api/v1/sources/cam/preview", "POST, OPTIONS"),
  ])
  func eachAddressSaysWhatItAnswers(target: String, allow: String) throws {
    #expect(try #require(APIAddress.find(try path(target))).methods.description == allow)
  }

  @Test(arguments: [
    "/api/v2", "/api/v1/nothing", "/api/v1/streams/cam/recording", "/api/v1/streams/cam/recording/pause",
    "/api/v1/streams/cam/recording/start/now", "/api/v1/recordings/cam", "/api/v1/sources/cam/start/x",
  ])
  func anythingElseIsNoAddress(target: String) throws {
    #expect(APIAddress.find(try path(target)) == nil)
    #expect(APIAddress.unknown(try path(target)).status == .notFound)
  }

  @Test func aWordThatIsNoneOfAFewIsAnsweredWithThem() throws {
    let help = APIAddress.unknown(try path("/api/v1/streams/cam/recording/pause")).help
    #expect(help == "Use one of start, stop, cancel.")
    #expect(APIAddress.unknown(try path("/api/v1/nothing")).help == "See /api/v1.")
  }

  @Test func noTwoAddressesAreTheSame() {
    for (index, address) in APIAddress.all.enumerated() {
      let example = address.pattern.split(separator: "/").map { $0.split(separator: "|").first.map(String.init) ?? "" }
      #expect(APIAddress.all.firstIndex { $0.pattern == APIAddress.find(example)?.pattern } == index)
    }
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
