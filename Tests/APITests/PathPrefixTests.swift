@testable import API
import Delivery
import HTTP
import NIOCore
import NIOHTTP1
import ServerSupport
import Testing

@Suite struct PathPrefixTests {
  @Test(arguments: [
    ("/weir/live/cam/index.m3u8?a=b", "/live/cam/index.m3u8?a=b"), ("/weir/~t/watch/cam", "/~t/watch/cam"),
    ("/weir", "/"), ("/weir/", "/"), ("/weir?x", "/?x"), ("http://h:1/weir/time", "http://h:1/time"),
    ("/weir/weir/x", "/weir/x"),
    // Without it, or with something like it.
    ("/live/cam", "/live/cam"), ("/weird/x", "/weird/x"), ("/Weir/x", "/Weir/x"), ("/x/weir/y", "/x/weir/y"),
    ("/wei", "/wei"), ("/", "/"), ("*", "*"), ("", ""), ("http://weir/x", "http://weir/x"),
    ("http://weir", "http://weir"),
  ])
  func itIsTakenOffWhereItIsWhole(target: String, rest: String) {
    #expect(String(buffer: PathPrefix.removed("/weir", from: ByteBuffer(string: target))) == rest)
    #expect(String(buffer: PathPrefix.removed("", from: ByteBuffer(string: target))) == target)
  }

  /// With and without it: some proxies take it off.
  @Test func addressesAnswerBelowItAndAtTheRoot() async throws {
    let files = WebFiles(prefix: "/weir")
    try await HTTPTestServer.run(
      prefix: "/weir",
      route: { request, loop in
        request.path == ["place"]
          ? .now(.text(request.base + "|" + request.path.joined(), cache: .never))
          : files.answer(request.path, to: request, on: loop)
      },
      { address, _ in
        let client = try await HTTPRawClient.connect(to: address)
        for start in ["/weir", ""] {
          #expect(try await client.get("\(start)/place").text == "/weir|place")
          #expect(try await client.get("\(start)/~a.b/place").text == "/weir/~a.b|place")
          let page = try await client.get("\(start)/pages/not-found.html").text
          #expect(page.contains("href=\"/weir/recordings\"") && page.contains("src=\"/weir/web/build-"))
          #expect(!page.contains("=\"/web/") && !page.contains("=\"/recordings"))
        }
        #expect(try await client.get("/weird/place").status == 404)
        await client.close()
      })
  }
}
