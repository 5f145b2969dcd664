internal import NIOCore

/// New or changed tracks that wait for the place at which players can take them, so that their start costs no frame.
struct DeferredTracks {
  /// Where they begin.
  enum Place {
    /// With the next sync sample of the leading track, and a discontinuity of all tracks.
    case syncSample
    /// With the next segment. The tracks that stay the same go on.
    case segment
  }

  let tracks: [TrackDescription]
  let place: Place
  /// Samples of those tracks that are new or changed.
  private(set) var samples: [Sample]
  private(set) var byteCount: Int
  /// Samples were dropped while the tracks waited. They begin with the next segment, whatever it begins with.
  private(set) var isOverdue = false

  /// Whether samples of the new track belong to the present one up to its place: it is the same, or is decoded in the same way
  /// and will only be described otherwise.
  func continues(_ present: TrackDescription, as new: TrackDescription) -> Bool {
    place == .syncSample ? present.isDecoded(like: new) : present == new
  }

  /// The limits are reached.
  var isFull: Bool {
    samples.count >= CutPolicy.deferredSampleLimit || byteCount >= CutPolicy.deferredByteLimit
  }

  mutating func keep(_ sample: Sample) {
    samples.append(sample)
    byteCount += sample.payload.readableBytes
  }

  /// Drops the older half of the samples. Those who watch other tracks notice nothing.
  mutating func dropOlder() {
    isOverdue = true
    repeat {
      samples.removeFirst((samples.count + 1) / 2)
      byteCount = Self.byteCount(samples)
    } while isFull && !samples.isEmpty
  }

  private static func byteCount(_ samples: [Sample]) -> Int {
    samples.reduce(0) { $0 + $1.payload.readableBytes }
  }

  /// Takes the samples of `former`, if their tracks are the same.
  init(_ tracks: [TrackDescription], at place: Place, after former: DeferredTracks?) {
    (self.tracks, self.place) = (tracks, place)
    samples =
      former.map { former in
        former.samples.filter { sample in
          tracks.first { $0.id == sample.track } == former.tracks.first { $0.id == sample.track }
        }
      } ?? []
    byteCount = Self.byteCount(samples)
    isOverdue = former?.isOverdue ?? false
  }
}
