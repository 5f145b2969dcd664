/// The protocol by which a viewer receives a stream.
package enum ViewerProtocol: String, CaseIterable, Sendable {
  case hls
  case dash
  /// The endless `stream.mp4`.
  case mp4
  case webrtc

  /// From the last path segment of an address below `/live/NAME`. Nil when several protocols use the address.
  package init?(lastPathSegment name: String) {
    let name = name.utf8
    if name.elementsEqual("stream.mp4".utf8) {
      self = .mp4
    } else if name.ends(with: ".m3u8") {
      self = .hls
    } else if name.ends(with: ".mpd") || name.ends(with: ".mpp") {
      self = .dash
    } else if name.ends(with: ".m4s") {
      // DASH addresses segments by their time.
      self = name.first == UInt8(ascii: "t") ? .dash : .hls
    } else {
      return nil
    }
  }
}

extension String.UTF8View {
  fileprivate func ends(with ending: String) -> Bool { suffix(ending.utf8.count).elementsEqual(ending.utf8) }
}
