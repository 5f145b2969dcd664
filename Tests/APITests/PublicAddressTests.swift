@testable import API
import HTTP
import NIOHTTP1
import Testing

@Suite struct PublicAddressTests {
  private func request(_ method: HTTPRequest.Method, _ target: String, accept: String = "*/*") throws -> HTTPRequest {
    HTTPRequest(
      method: method, target: try RequestTarget(parsing: target), fields: .list(HTTPHeaders([("Accept", accept)])))
  }

  @Test(arguments: [
    "/", "/recordings", "/recordings/", "/watch/cam", "/watch/cam/", "/embed/cam", "/publish", "/publish/cam",
    "/web/weir-player.js", "/favicon.ico", "/time", "/time/", "/healthz", "/readyz", "/metrics", "/live/cam/index.m3u8",
    "/live/cam/dvr.m3u8", "/live/cam/manifest.mpd", "/live/cam/manifest.mpp", "/live/cam/stream.mp4",
    "/live/cam/thumbnail.jpg", "/live/cam/status.json", "/live/cam/e1/av/index.m3u8", "/live/cam/e1/audio-2/init-1.mp4",
    "/live/cam/e1/720p/12.3.m4s", "/recordings/cam/20261121T072410Z.mp4", "/recordings/cam/20261121T072410Z/index.m3u8",
    "/recordings/cam/20261121T072410Z/av/12.m4s",
  ])
  func `What is read allows nothing else, and says so`(_ target: String) throws {
    #expect(PublicAddress.methods(of: try request(.options, target))?.description == "GET, HEAD, OPTIONS")
    for method: HTTPRequest.Method in [.get, .head] {
      #expect(PublicAddress.refusal(of: try request(method, target)) == nil)
    }
    for method: HTTPRequest.Method in [.post, .put, .delete, .patch] {
      let refusal = try #require(PublicAddress.refusal(of: try request(method, target)), "\(method)")
      #expect(refusal.status == .methodNotAllowed && refusal.response.headers.contains { $0.name == "Allow" })
    }
  }

  @Test(arguments: ["/live/cam/ingest", "/live/cam/ingest/"])
  func `An upload is posted or put, and cannot be read`(_ target: String) throws {
    #expect(PublicAddress.methods(of: try request(.get, target))?.description == "POST, PUT, OPTIONS")
    #expect(PublicAddress.refusal(of: try request(.get, target))?.status == .methodNotAllowed)
    #expect(PublicAddress.refusal(of: try request(.post, target)) == nil)
  }

  @Test(arguments: [
    "/nowhere", "/live", "/live/cam", "/live/cam/nothing", "/live/cam/index.m3u8/", "/live/cam/e1/av",
    "/live/cam/e1/av/0.txt",
    "/live/a%20b/index.m3u8", "/watch/a%20b", "/watch/cam/x", "/recordings/cam", "/recordings/cam/x/y", "/time/now",
    "/web",
    "/healthz/x", "/recordings/cam/20261121T072410Z/av/12.m4s/x",
  ])
  func `What is no address is none for any method`(_ target: String) throws {
    #expect(PublicAddress.methods(of: try request(.options, target)) == nil)
    #expect(PublicAddress.refusal(of: try request(.post, target))?.status == .notFound)
    // The route's own 404 says what to do.
    #expect(PublicAddress.refusal(of: try request(.get, target)) == nil)
  }

  @Test(arguments: ["/live", "/live/cam"])
  func `An address from which browsers are sent on is one for browsers`(_ target: String) throws {
    #expect(PublicAddress.methods(of: try request(.options, target, accept: "text/html")) == .get)
  }
}
