import FMP4
@testable import Streams
import Support
import Testing

/// Tracks keep their renditions over the publications of an epoch.
struct TrackPlacesTests {
  private func video(_ id: UInt32) throws -> TrackDescription {
    var track = try SyntheticMedia.video()
    track.id = TrackID(id)
    return track
  }

  private func audio(_ id: UInt32, _ language: String = "und") throws -> TrackDescription {
    var track = try SyntheticMedia.audio(TrackID(id))
    track.language = language
    return track
  }

  private func names(_ tracks: [TrackDescription]) -> [String] {
    tracks.map { Rendition($0).rawValue + ($0.language == "und" ? "" : " \($0.language)") }
  }

  @Test func `Tracks get the lowest numbers in the order of their IDs`() throws {
    var places = TrackPlaces()
    #expect(names(places.place([try video(1), try audio(2)])) == ["video", "audio"])
    #expect(names(places.place([try video(1), try audio(2), try audio(10)])) == ["video", "audio", "audio-2"])
    #expect(places.place(of: TrackID(10)) == TrackID(4) && places.place(of: .video) == .video)
    var others = TrackPlaces()
    #expect(names(others.place([try audio(7), try video(9), try audio(5)])) == ["video", "audio", "audio-2"])
    #expect(others.place(of: TrackID(5)) == .audio && others.place(of: TrackID(7)) == TrackID(4))
  }

  @Test func `The audio of the wanted language comes first`() throws {
    var places = TrackPlaces(preferring: "eng")
    #expect(
      names(places.place([try audio(2, "deu"), try audio(4, "fra"), try audio(6, "eng")])) == [
        "audio eng", "audio-2 deu", "audio-3 fra",
      ])
    #expect(places.place(of: TrackID(6)) == .audio && places.place(of: .audio) == TrackID(4))
    var others = TrackPlaces(preferring: "eng")
    #expect(names(others.place([try audio(2, "deu"), try audio(4)])) == ["audio deu", "audio-2"])
  }

  @Test func `A later publication is known by IDs and languages`() throws {
    var places = TrackPlaces()
    _ = places.place([try video(1), try audio(2, "deu"), try audio(4, "eng")])
    places.startPublication()
    // The same languages under other IDs.
    #expect(
      names(places.place([try video(1), try audio(2, "eng"), try audio(4, "deu")])) == [
        "video", "audio deu", "audio-2 eng",
      ])
    #expect(places.place(of: .audio) == TrackID(4) && places.place(of: TrackID(4)) == .audio)
    places.startPublication()
    // English alone keeps its place; then a language that is new.
    #expect(names(places.place([try video(1), try audio(2, "eng")])) == ["video", "audio-2 eng"])
    #expect(
      names(places.place([try video(1), try audio(2, "eng"), try audio(8, "fra")])) == [
        "video", "audio-2 eng", "audio-3 fra",
      ])
    places.startPublication()
    #expect(names(places.place([try video(1), try audio(4), try audio(8)])) == ["video", "audio", "audio-3"])
  }

  @Test func `A track whose language becomes known stays where it is`() throws {
    var places = TrackPlaces()
    _ = places.place([try video(1), try audio(2), try audio(4)])
    #expect(
      names(places.place([try video(1), try audio(2), try audio(4, "deu")])) == ["video", "audio", "audio-2 deu"])
  }

  @Test func `No publisher gets numbers without end`() throws {
    var places = TrackPlaces()
    for id in UInt32(0)..<200 {
      places.startPublication()
      let placed = places.place([try audio(2 + id * 2, id % 2 == 0 ? "deu" : "und")])
      #expect((1...Rendition.mostTracks).contains(placed[0].number))
      #expect(Rendition(rawValue: Rendition(placed[0]).rawValue) == Rendition(placed[0]))
    }
  }

  @Test func `Names of renditions are read as they are written`() {
    for name in ["av", "video", "audio", "video-2", "audio-16", "audio-32"] {
      #expect(Rendition(rawValue: name)?.rawValue == name && Rendition(pathSegment: name)?.rawValue == name)
    }
    for name in [
      "", "audio-", "audio-1", "audio-0", "audio-02", "audio-33", "audio--2", "audio-+2", "text-2", "-2", "av-2",
    ] {
      #expect(Rendition(pathSegment: name) == nil)
    }
  }
}
