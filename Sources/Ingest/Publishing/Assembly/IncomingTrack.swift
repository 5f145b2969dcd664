internal import FMP4

/// A track of a publication: video or audio.
protocol IncomingTrack {
  var id: TrackID { get }
}

extension VideoTrack: IncomingTrack {}
extension AudioTrack: IncomingTrack {}

extension Array where Element: IncomingTrack {
  /// Where the track of that number stands. A loop, because a closure would copy each track for each sample.
  func index(of id: TrackID) -> Int? {
    for index in indices where self[index].id == id { return index }
    return nil
  }
}
