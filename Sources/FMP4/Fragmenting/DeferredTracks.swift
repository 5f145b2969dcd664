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
  var samples: [Sample]

  /// Takes the samples of `former`, if their tracks are the same.
  init(_ tracks: [TrackDescription], at place: Place, after former: DeferredTracks?) {
    (self.tracks, self.place) = (tracks, place)
    samples =
      former.map { former in
        former.samples.filter { sample in
          tracks.first { $0.id == sample.track } == former.tracks.first { $0.id == sample.track }
        }
      } ?? []
  }
}
