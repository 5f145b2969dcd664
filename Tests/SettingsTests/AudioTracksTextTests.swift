import Base
import FMP4
import NIOCore
@testable import Playlists
import Recording
@testable import Settings
@testable import Streams
import StreamSupport
import Support
import Testing

/// Settings of single tracks, and what they do.
@Suite struct AudioTracksTextTests {
  @Test func languagesAreThoseOfTracks() throws {
    #expect(try AudioTracksText.languages("audio=en,audio-2=de") == [1: "eng", 2: "deu"])
    for text in ["", "audio", "video=de", "audio-1=de", "audio-33=de", "audio=d", "audio=de,audio=en", "audio=de,"] {
      #expect(throws: ValueError.self) { try AudioTracksText.languages(text) }
    }
  }

  @Test func namesAreThoseOfTracksOrLanguages() throws {
    let names = try AudioTracksText.names("audio-2=On stage,de=Deutsch")
    #expect(names.ofTracks == [2: "On stage"] && names.ofLanguages == ["deu": "Deutsch"])
    var german = try SyntheticMedia.audio(TrackID(.audio, 3))
    #expect(names[german] == nil)
    german.language = "deu"
    let second = try SyntheticMedia.audio(TrackID(.audio, 2))
    #expect(names[german] == "Deutsch" && names[second] == "On stage")
    #expect(try AudioTracksText.names("de=" + String(repeating: "x", count: 64)).ofLanguages.count == 1)
    let long = "de=" + String(repeating: "x", count: 65)
    for text in ["de=", "video=x", "de=\"", "de=a\nb", "de=x,deu=y", "x1=y", long] {
      #expect(throws: ValueError.self) { try AudioTracksText.names(text) }
    }
  }

  @Test func aChoiceIsAKindOrAListOfTracks() throws {
    #expect(try AudioTracksText.choice("all") == .all)
    #expect(try AudioTracksText.choice("video") == .kind(.video))
    #expect(try AudioTracksText.choice("video,audio-2") == .numbers([.video, TrackID(.audio, 2)]))
    for text in ["", "av", "360p", "video,video", "video,", "aac"] {
      #expect(throws: ValueError.self) { try AudioTracksText.choice(text) }
    }
  }

  @Test func settingsNameTracksInPlaylistsAndManifests() throws {
    var settings = StreamSettings()
    settings.audioNames = try AudioTracksText.names("audio-2=On stage,en=English")
    settings.audioLanguages = [1: "eng"]
    var driver = EpochDriver(settings)
    driver.epoch.startPublication()
    try driver.receive(.clock(WallClockAnchor(mediaTime: .zero, wallTime: EpochDriver.wall)))
    let further = TrackID(.audio, 2)
    try driver.receive(
      .tracks([try SyntheticMedia.video(), try SyntheticMedia.audio(), try SyntheticMedia.audio(further)]))
    for sample in SyntheticMedia.interleaved(seconds: 5, isSteady: true, furtherAudios: [further]) {
      try driver.receive(.sample(sample))
    }
    let view = driver.epoch.viewWithRungs
    let text = String(buffer: HLSMultivariantPlaylist(epoch: view, layout: .separate).render())
    #expect(text.contains("NAME=\"English\",LANGUAGE=\"en\"") && text.contains("NAME=\"On stage\",LANGUAGE=\"und\""))
    let sets = DASHManifest(epoch: view, source: .folder).root(publishTime: 0).children.flatMap(\.children)
    let labels = sets.filter { $0["contentType"] == "audio" }.map { set in
      set.children.first { $0.name == "Label" }?.text
    }
    #expect(labels == ["English", "On stage"])
  }
}
