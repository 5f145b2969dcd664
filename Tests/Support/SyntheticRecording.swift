package import FMP4
internal import NIOCore

/// A recording as weir writes it: an init segment, then fragments, each a `moof` with its `mdat`.
package struct SyntheticRecording {
  package var bytes: [UInt8] = []
  package let tracks: [TrackDescription]
  /// Where each fragment lies, from its `prft` or `moof` to the end of its `mdat`.
  package var places: [Range<Int>] = []
  package var fragments: [Fragment] = []

  /// The time of day of media time 0.
  package static let clock = WallClockAnchor(mediaTime: .zero, wallTime: 1_795_245_850_000_000_000)

  /// Thirty frames of video and 46.875 frames of audio a second, of the tracks that are given.
  package init(_ tracks: [TrackDescription], seconds: Int = 3, offset: Int32 = 1000) {
    self.tracks = tracks
    var segmenter = Segmenter()
    var events = segmenter.receive(.tracks(tracks))
    for sample in SyntheticMedia.interleaved(seconds: seconds, offset: offset)
    where tracks.contains(where: { $0.id == sample.track }) {
      events += segmenter.receive(.sample(sample))
    }
    events += segmenter.receive(.end(.finished))
    for event in events {
      switch event {
      case .initialization(let segment): bytes += Array(segment.whole.readableBytesView)
      case .fragment(let fragment):
        let start = bytes.count
        bytes += Array(FragmentBoxes.interleavedHead(of: fragment, clock: Self.clock).readableBytesView)
        bytes += fragment.payloads.flatMap { Array($0.readableBytesView) }
        places.append(start..<bytes.count)
        fragments.append(fragment)
      default: break
      }
    }
  }

  /// Bytes before the first fragment.
  package var headLength: Int { places.first?.lowerBound ?? bytes.count }
}
