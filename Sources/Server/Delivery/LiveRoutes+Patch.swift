internal import FMP4
internal import HTTP
internal import NIOCore
internal import NIOHTTP1
internal import Playlists
internal import Streams

extension LiveRoutes {
  /// `/live/{stream}/manifest.mpp?from={time}`: the patch from the manifest published at that time, in milliseconds since 1970,
  /// to the current one (ISO/IEC 23009-1 §5.15).
  func patch(_ request: HTTPRequest, of stream: LiveStream, on eventLoop: any EventLoop) -> HTTPAnswer {
    guard let text = request.query("from"), let base = Self.publishTime(text) else {
      return .now(
        Problem(
          .malformedQuery, "Request a patch as manifest.mpp?from=TIME, with the time in the manifest's PatchLocation."
        ).response)
    }
    return stream.patch(from: base, to: stream.view, on: eventLoop)
  }

  private static func publishTime(_ text: String) -> WallTime? {
    guard (1...15).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    return Int64(text).map(WallTime.init(milliseconds:))
  }
}
