/// Which way of playing the pages choose where a browser has several.
package enum PlayerChoice: String, Sendable, Hashable, CaseIterable {
  /// The endless `stream.mp4`, by Media Source Extensions.
  case mse
  /// HLS, by Media Source Extensions.
  case hls
}
