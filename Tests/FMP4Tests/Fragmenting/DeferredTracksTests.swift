@testable import FMP4
import NIOCore
import Support
import Testing

@Suite("Tracks that wait for their place")
struct DeferredTracksTests {
  private func waiting(_ tracks: [TrackDescription]) -> DeferredTracks {
    DeferredTracks(tracks, at: .segment, after: nil)
  }

  @Test func `They are full at the limit of samples, and not before`() throws {
    var tracks = waiting([try SyntheticMedia.audio()])
    for index in 0..<CutPolicy.deferredSampleLimit - 1 { tracks.keep(SyntheticMedia.audio(index, size: 1)) }
    #expect(!tracks.isFull)
    tracks.keep(SyntheticMedia.audio(CutPolicy.deferredSampleLimit, size: 1))
    #expect(tracks.isFull && !tracks.isOverdue)
  }

  @Test func `They are full at the limit of bytes, and not before`() throws {
    var tracks = waiting([try SyntheticMedia.audio()])
    tracks.keep(SyntheticMedia.audio(0, size: CutPolicy.deferredByteLimit - 1))
    #expect(!tracks.isFull)
    tracks.keep(SyntheticMedia.audio(1, size: 1))
    #expect(tracks.isFull)
  }

  @Test func `The older half goes, and they are overdue then`() throws {
    var tracks = waiting([try SyntheticMedia.audio()])
    for index in 0..<CutPolicy.deferredSampleLimit { tracks.keep(SyntheticMedia.audio(index, size: 1)) }
    tracks.dropOlder()
    let half = CutPolicy.deferredSampleLimit / 2
    #expect(tracks.samples.map(\.decodeTime) == (half..<2 * half).map { Int64($0) * 1024 })
    #expect(tracks.isOverdue && !tracks.isFull)
    for index in 0..<half - 1 { tracks.keep(SyntheticMedia.audio(index, size: 1)) }
    #expect(!tracks.isFull, "what went does not count any more")
  }

  @Test func `Large samples go until the rest fits, also a single one`() throws {
    var tracks = waiting([try SyntheticMedia.audio()])
    tracks.keep(SyntheticMedia.audio(0, size: 10))
    for index in 1...3 { tracks.keep(SyntheticMedia.audio(index, size: CutPolicy.deferredByteLimit)) }
    tracks.dropOlder()
    #expect(tracks.samples.isEmpty && !tracks.isFull)
  }

  @Test func `What waited goes on with tracks that stayed the same, and is dropped with others`() throws {
    let (second, third) = (try SyntheticMedia.audio(TrackID(4)), try SyntheticMedia.audio(TrackID(6)))
    var before = waiting([second, third])
    for (index, id) in [4, 6, 4, 6].enumerated() {
      var sample = SyntheticMedia.audio(index)
      sample.track = TrackID(UInt32(id))
      before.keep(sample)
    }
    var changed = third
    changed.language = "deu"
    #expect(DeferredTracks([second, third], at: .segment, after: before).samples.count == 4)
    let after = DeferredTracks([second, changed], at: .syncSample, after: before)
    #expect(after.samples.map(\.track) == [TrackID(4), TrackID(4)])
    #expect(DeferredTracks([changed], at: .segment, after: before).samples.isEmpty)
  }

  @Test func `Tracks that are overdue stay so when they change`() throws {
    var before = waiting([try SyntheticMedia.audio()])
    before.keep(SyntheticMedia.audio(0))
    before.dropOlder()
    #expect(DeferredTracks(before.tracks, at: .segment, after: before).isOverdue)
  }
}
