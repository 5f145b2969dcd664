@testable import FMP4
import Support
import Testing

/// ISO/IEC 14496-12 §8.6.6: an edit's duration counts in the movie's timescale, its media time in the track's.
@Suite("How tracks lie on a movie's timeline")
struct MovieTimelineTests {
  private typealias Edit = MovieTimeline.Edit

  private func run(_ track: TrackID, _ timescale: UInt32, at start: Int64, _ durations: [UInt32], offset: Int32 = 0)
    -> TrackRun
  {
    TrackRun(
      track: track, timescale: timescale, baseDecodeTime: start,
      samples: durations.map { RunSample(size: 1, duration: $0, compositionOffset: offset, isSync: true) },
      byteCount: durations.count, duration: durations.reduce(0) { $0 + Int64($1) })
  }

  /// Two seconds of video of 30000 ticks a second, and two of audio of 48000, each from its decode time on.
  private func tables(video: Int64 = 0, offset: Int32 = 0, audio: Int64 = 0) throws -> MovieTables {
    var tables = MovieTables(tracks: [try SyntheticMedia.video(), try SyntheticMedia.audio()])
    tables.append(
      [
        run(.video, 30_000, at: video, Array(repeating: 1000, count: 60), offset: offset),
        run(.audio, 48_000, at: audio, Array(repeating: 960, count: 100)),
      ], mediaOffset: 0)
    return tables
  }

  @Test func `Tracks that begin together are shown whole`() throws {
    let timeline = MovieTimeline(try tables().tracks)
    #expect(timeline.timescale == 30_000)
    #expect(timeline.edits == [[Edit(duration: 60_000, mediaTime: 0)], [Edit(duration: 60_000, mediaTime: 0)]])
    #expect(timeline.durations == [60_000, 60_000])
  }

  @Test func `The reordering of video is trimmed, and audio that is heard before the first frame`() throws {
    let timeline = MovieTimeline(try tables(offset: 2000).tracks)
    #expect(timeline.edits[0] == [Edit(duration: 60_000, mediaTime: 2000)])
    // A fifteenth of a second is 3200 of 48000 ticks.
    #expect(timeline.edits[1] == [Edit(duration: 58_000, mediaTime: 3200)])
  }

  @Test func `Audio that begins 100 ms earlier is trimmed, and more is kept while the video waits`() throws {
    let trimmed = MovieTimeline(try tables(video: 30_000, audio: 43_200).tracks)
    #expect(trimmed.edits[0] == [Edit(duration: 60_000, mediaTime: 0)])
    #expect(trimmed.edits[1].map(\.mediaTime) == [4800])
    let kept = MovieTimeline(try tables(video: 30_000, audio: 43_152).tracks)
    #expect(kept.edits[0] == [Edit(duration: 3030, mediaTime: -1), Edit(duration: 60_000, mediaTime: 0)])
    #expect(kept.edits[1].map(\.mediaTime) == [0])
    #expect(kept.durations == [63_030, 60_000])
  }

  @Test func `Audio that begins later waits in an empty edit`() throws {
    let timeline = MovieTimeline(try tables(audio: 24_000).tracks)
    #expect(timeline.edits[1] == [Edit(duration: 15_000, mediaTime: -1), Edit(duration: 60_000, mediaTime: 0)])
    #expect(timeline.durations == [60_000, 75_000])
  }

  @Test func `A clip shows its stretch of every track`() throws {
    let second = MediaTime(milliseconds: 1000)..<MediaTime(milliseconds: 1500)
    let timeline = MovieTimeline(try tables(offset: 2000).tracks, showing: second)
    #expect(timeline.edits[0] == [Edit(duration: 15_000, mediaTime: 30_000)])
    #expect(timeline.edits[1] == [Edit(duration: 15_000, mediaTime: 48_000)])
  }

  @Test func `A clip ends where a track does and shows nothing of one that is over`() throws {
    let late = MediaTime(milliseconds: 1900)..<MediaTime(milliseconds: 9000)
    let timeline = MovieTimeline(try tables(offset: 15_000).tracks, showing: late)
    #expect(timeline.edits[0] == [Edit(duration: 18_000, mediaTime: 57_000)], "up to 2.5 s")
    #expect(timeline.edits[1] == [Edit(duration: 3000, mediaTime: 91_200)], "up to 2 s")
    let over = MovieTimeline(
      try tables().tracks, showing: MediaTime(milliseconds: 5000)..<MediaTime(milliseconds: 6000))
    #expect(over.durations == [0, 0])
  }

  /// A duration that is too short by a part of a tick takes the last sample away.
  @Test(arguments: [(960, 600), (961, 601), (959, 600), (1, 1)] as [(UInt32, UInt64)])
  func `Durations are rounded up to the movie's ticks`(_ samples: UInt32, _ ticks: UInt64) throws {
    var tables = MovieTables(tracks: [try SyntheticMedia.video(), try SyntheticMedia.audio()])
    tables.append([run(.video, 30_000, at: 0, [1000]), run(.audio, 48_000, at: 0, [samples])], mediaOffset: 0)
    #expect(MovieTimeline(tables.tracks).durations == [1000, ticks])
  }

  @Test func `Audio alone has its own timescale`() throws {
    var tables = MovieTables(tracks: [try SyntheticMedia.audio()])
    tables.append([run(.audio, 48_000, at: 777, [1024])], mediaOffset: 0)
    let timeline = MovieTimeline(tables.tracks)
    #expect(timeline.timescale == 48_000 && timeline.edits == [[Edit(duration: 1024, mediaTime: 0)]])
  }
}
