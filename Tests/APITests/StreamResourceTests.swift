@testable import API
import HTTP
import Testing

/// What caches may ask about: an address that an escaped slash moved apart is none.
@Suite struct StreamResourceTests {
  private func isOne(_ address: String) throws -> Bool {
    StreamResource.isOne(try RequestTarget(parsing: address)) { APITable.find($0) != nil }
  }

  @Test(arguments: [
    "/live/cam/", "/live/cam/index.m3u8", "/live/cam/stream.mp4?audio=2", "/live/cam/mwxjqsb0/av/index.m3u8",
    "/live/cam/mwxjqsb0/720p/12.3.m4s", "/live/cam/mwxjqsb0/audio-2/init-1.mp4", "/watch/cam", "/embed/cam",
    "/recordings/cam", "/recordings/cam/20261121T072410Z.mp4", "/recordings/cam/20261121T072410Z-2/index.m3u8",
    "/recordings/cam/20261121T072410Z/video/1.m4s", "/api/v1/streams/cam",
    "/api/v1/recordings/cam/20261121T072410Z.mp4/clip",
  ])
  func whatIsServedOfAStreamIsOneThing(address: String) throws {
    #expect(try isOne(address))
  }

  @Test(arguments: [
    "/", "/live", "/live/cam", "/live/cam/live/studio/", "/live/cam/live/studio/index.m3u8",
    "/live/cam/live/studio/mwxjqsb0/av/index.m3u8", "/live/cam/mwxjqsb0/live/studio/", "/live/cam/mwxjqsb0/av/x/1.m4s",
    "/live/cam/live/av/index.m3u8", "/live/-/index.m3u8", "/web/live/studio/", "/x/live/studio/", "/watch/cam/",
    "/watch/cam/live/studio/", "/recordings/cam/live/studio/index.m3u8", "/recordings/cam/live/av/index.m3u8",
    "/api/v1/streams/cam/live/studio", "/api/v1/keys", "/time",
  ])
  func anythingElseIsNot(address: String) throws {
    #expect(try !isOne(address))
  }
}
