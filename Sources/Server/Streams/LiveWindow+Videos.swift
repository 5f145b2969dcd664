package import FMP4

/// Several videos of a stream.
extension LiveWindow {
  /// The first video, and the further ones that are the same picture in other sizes, as far as that shows: the same shape,
  /// and key frames at the same places. Players may switch between them.
  package var switchableVideos: [TrackDescription] {
    let videos = currentInit?.tracks.filter { $0.kind == .video } ?? []
    guard let first = videos.first, let size = first.codec.displaySize else { return Array(videos.prefix(1)) }
    var sizes = [size]
    return [first]
      + videos.dropFirst().filter { video in
        guard let other = video.codec.displaySize, !unaligned.contains(video.id), isSeen(video.id),
          !sizes.contains(where: { $0 == other }), Self.isSameShape(size, other)
        else { return false }
        sizes.append(other)
        return true
      }
  }

  /// The newest segments have media of the track.
  private func isSeen(_ track: TrackID) -> Bool { segments.suffix(2).contains { $0.span(of: track) != nil } }

  /// The ratios of width and height differ by at most 2 %.
  private static func isSameShape(_ one: (width: Int, height: Int), _ other: (width: Int, height: Int)) -> Bool {
    let (left, right) = (
      one.width.multipliedFullWidth(by: other.height), other.width.multipliedFullWidth(by: one.height)
    )
    guard left.high == 0, right.high == 0 else { return false }
    let (most, least) = (max(left.low, right.low), min(left.low, right.low))
    return (most - least) <= most / 50
  }

  /// Every segment of the rendition so far begins with a key frame, as playlists may promise. Of a further video the second
  /// one tells whether the next ones will.
  package func isIndependent(_ rendition: Rendition) -> Bool {
    guard case .further(.video, let number) = rendition else { return isIndependent }
    let track = TrackID(.video, number)
    return isIndependent && !unaligned.contains(track) && segments.count { $0.span(of: track) != nil } > 1
  }
}
