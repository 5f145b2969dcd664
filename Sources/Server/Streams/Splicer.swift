internal import FMP4

/// Places the timeline of each publication after that of the previous one. The publications of an epoch share one timeline;
/// an outage leaves no gap in media time. The wall clock tells the length of the outage.
struct Splicer: Sendable {
  /// The origin of the current publication on the epoch's timeline.
  private(set) var offset = MediaTime.zero
  private var offsets: [TrackID: Int64] = [:]
  private var places: TrackPlaces

  /// `language`: of the audio that comes first.
  init(preferring language: String? = nil) { places = TrackPlaces(preferring: language) }

  /// The next publication starts at the end of the media, rounded up to a millisecond. This is exact in each timescale that is a
  /// multiple of 1000.
  mutating func startPublication(after end: MediaTime?) {
    places.startPublication()
    guard let end else { return }
    let milliseconds = end.converted(to: 1000)
    let roundedUp = milliseconds < end ? milliseconds.ticks &+ 1 : milliseconds.ticks
    offset = MediaTime(milliseconds: roundedUp)
    offsets = [:]
  }

  /// The epoch's ID of a track of the publication.
  func place(of track: TrackID) -> TrackID { places.place(of: track) }

  /// The event on the epoch's timeline, with the IDs of the epoch's tracks.
  mutating func shift(_ event: MediaEvent) -> MediaEvent {
    switch event {
    case .tracks(let tracks):
      let tracks = places.place(tracks)
      for track in tracks { offsets[track.id] = offset.rescaled(to: track.timescale) }
      return .tracks(tracks)
    case .sample(var sample):
      if offset.ticks == 0, !places.isMoved { return event }
      sample.track = places.place(of: sample.track)
      sample.decodeTime &+= offsets[sample.track] ?? 0
      return .sample(sample)
    case .clock(var anchor):
      anchor.mediaTime = anchor.mediaTime + offset
      return .clock(anchor)
    case .progress(let time):
      return .progress(time + offset)
    case .discontinuity, .end:
      return event
    }
  }
}
