internal import Delivery
internal import HTTP
internal import RecordingFiles
internal import Streams

/// Whether an address names exactly one thing of one stream, by its form: what `Router` would look for. A cache that asks about an
/// address may have decoded it. So an escaped slash in it may hide where the name of the stream ends: such an address has another
/// form than any that is served.
enum StreamResource {
  /// True as well for `/live/NAME/`, which stands for all of a live stream.
  ///
  /// - Parameter isOfAPI: whether the API has the address.
  static func isOne(_ target: RequestTarget, isOfAPI: ([String]) -> Bool) -> Bool {
    let path = target.segments
    guard ViewerGate.stream(at: path) != nil else { return false }
    if target.endsWithSlash { return path.first == "live" && path.count == 2 }
    switch path.first {
    case "live": return path.count == 3 || path.count == 5 && isMedia(path)
    case "watch", "embed", "whep": return path.count == 2
    case "recordings": return path.count <= 3 || isReplay(path)
    case "api": return isOfAPI(path)
    default: return false
    }
  }

  private static func isMedia(_ path: [String]) -> Bool {
    isEpoch(path[2]) && Rendition(pathSegment: path[3]) != nil && MediaName.parse(path[4]) != nil
  }

  private static func isReplay(_ path: [String]) -> Bool {
    guard RecordingName(finished: path[2] + ".mp4") != nil else { return false }
    if path.count == 4 { return path[3] == "index.m3u8" || path[3] == "manifest.mpd" }
    return path.count == 5 && Rendition(pathSegment: path[3]) != nil && MediaName.parse(path[4]) != nil
  }

  /// A time since 2001 in milliseconds, as `EpochID` writes it.
  private static func isEpoch(_ text: String) -> Bool { Int64(text, radix: 36).map { $0 >= 978_307_200_000 } ?? false }
}
