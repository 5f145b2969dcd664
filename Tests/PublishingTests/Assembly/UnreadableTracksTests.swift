import FMP4
import Logging
@testable import Publishing
import Testing

@Suite("Tracks that cannot be read")
struct UnreadableTracksTests {
  private let bad = PublicationWarning.unreadable(.audio, "no header")

  /// Warnings by their signs, and the number of log lines.
  private func told(_ change: (inout [PublicationAction]) -> Void) -> (warnings: [String], lines: Int) {
    var out: [PublicationAction] = []
    change(&out)
    let warnings = out.compactMap { action -> String? in
      switch action {
      case .warn(let warning): "+\(warning)"
      case .withdraw(let warning): "-\(warning)"
      default: nil
      }
    }
    return (warnings, out.count { if case .log = $0 { true } else { false } })
  }

  @Test func `A track is told of once, until it can be read again`() {
    var tracks = UnreadableTracks()
    var told = told { tracks.add(bad, .audio, to: &$0) }
    #expect(told.warnings == ["+\(bad)"] && told.lines == 1)
    told = self.told { tracks.add(.unreadable(.audio, "another reason"), .audio, to: &$0) }
    #expect(told.warnings.isEmpty && told.lines == 0)
    #expect(self.told { tracks.remove(.audio, to: &$0) }.warnings == ["-\(bad)"])
    #expect(self.told { tracks.remove(.audio, to: &$0) }.warnings.isEmpty)
  }

  @Test func `A warning of two tracks stands as long as it is true of one`() {
    var tracks = UnreadableTracks()
    let told = told {
      tracks.add(bad, .audio, to: &$0)
      tracks.add(bad, TrackID(4), to: &$0)
    }
    #expect(told.warnings == ["+\(bad)"])
    #expect(self.told { tracks.remove(.audio, to: &$0) }.warnings.isEmpty)
    #expect(self.told { tracks.remove(TrackID(4), to: &$0) }.warnings == ["-\(bad)"])
  }

  @Test func `A publisher that comes and goes here with each frame fills no log`() {
    var tracks = UnreadableTracks()
    let told = told { out in
      for _ in 0..<100 {
        tracks.add(bad, .audio, to: &out)
        tracks.remove(.audio, to: &out)
      }
    }
    #expect(told.lines == 1 && told.warnings.count == 200)
  }

  @Test func `Other reasons fill no log either`() {
    var tracks = UnreadableTracks()
    let told = told { out in
      for reason in 0..<100 {
        tracks.add(.leftOutForm(.audio, "\(reason)"), .audio, to: &out)
        tracks.remove(.audio, to: &out)
      }
    }
    #expect(told.lines == 8 && told.warnings.count == 200)
  }

  @Test func `Of a kind one codec is told at a time, until its track can be taken`() {
    var tracks = UnreadableTracks()
    var answers: [Bool] = []
    var told = told { out in
      answers.append(tracks.add(codec: "FLAC", of: .audio, .audio, to: &out))
      answers.append(tracks.add(codec: "Speex", of: .audio, TrackID(4), to: &out))
      answers.append(tracks.add(codec: "VP6", of: .video, .video, to: &out))
      tracks.take(.audio, .aac, to: &out)
      answers.append(tracks.add(codec: "Speex", of: .audio, TrackID(4), to: &out))
    }
    let (flac, speex) = (
      PublicationWarning.leftOutCodec(.audio, "FLAC"), PublicationWarning.leftOutCodec(.audio, "Speex")
    )
    #expect(answers == [true, false, true, true])
    #expect(
      told.warnings == ["+\(flac)", "+\(PublicationWarning.leftOutCodec(.video, "VP6"))", "-\(flac)", "+\(speex)"])
    #expect(told.lines == 3)
    told = self.told { out in
      for _ in 0..<3 { tracks.take(TrackID(6), .ac3, to: &out) }
      tracks.take(TrackID(6), .aac, to: &out)
    }
    let rare = PublicationWarning.rarelyPlayed("AC-3")
    #expect(told.warnings == ["+\(rare)", "-\(rare)"] && told.lines == 0, "the stream logs it")
  }

  @Test func `A track that few players can play may be left out, and is told of again when it comes back`() {
    var tracks = UnreadableTracks()
    var isNew = false
    let told = told { out in
      tracks.take(.audio, .ac3, to: &out)
      tracks.remove(.audio, to: &out)
      isNew = tracks.add(codec: "FLAC", of: .audio, .audio, to: &out)
      tracks.take(.audio, .ac3, to: &out)
      tracks.end(.audio, to: &out)
    }
    let (rare, flac) = (
      PublicationWarning.rarelyPlayed("AC-3"), PublicationWarning.leftOutCodec(.audio, "FLAC")
    )
    #expect(isNew && told.lines == 1)
    #expect(told.warnings == ["+\(rare)", "-\(rare)", "+\(flac)", "-\(flac)", "+\(rare)", "-\(rare)"])
  }

  private struct Track: IncomingTrack {
    let id: TrackID
  }

  @Test func `Tracks are found by their numbers, wherever they stand`() {
    let tracks = [2, 1, 4].map { Track(id: TrackID($0)) }
    #expect([1, 2, 4].map { tracks.index(of: TrackID($0)) } == [1, 0, 2])
    #expect(tracks.index(of: TrackID(3)) == nil && [Track]().index(of: .video) == nil)
  }
}
