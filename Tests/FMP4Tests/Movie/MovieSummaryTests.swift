@testable import FMP4
import NIOCore
import Support
import Testing

@Suite("What a movie's tables say in all")
struct MovieSummaryTests {
  private func movie(_ content: [UInt8]) throws -> BoxView {
    try #require(BoxReader(ByteBuffer(bytes: BoxBytes.box("moov", content))).first { _ in true })
  }

  /// `mvhd` of version 0 (ISO/IEC 14496-12 §8.2.2): creation, modification, timescale, duration.
  private func header(timescale: UInt32, duration: UInt32) -> [UInt8] {
    BoxBytes.fullBox("mvhd", BoxBytes.u64(0) + BoxBytes.u32(timescale) + BoxBytes.u32(duration))
  }

  /// A track whose `stbl` has this; sample_size and sample_count of `stsz` stand first (§8.7.3).
  private func track(_ table: [UInt8]) -> [UInt8] {
    BoxBytes.box("trak", BoxBytes.box("mdia", BoxBytes.box("minf", BoxBytes.box("stbl", table))))
  }

  private func sizes(_ type: String, _ size: UInt32, _ count: UInt32) -> [UInt8] {
    BoxBytes.fullBox(type, BoxBytes.u32(size) + BoxBytes.u32(count))
  }

  @Test func `Samples of all tracks are counted, in either form of sizes`() throws {
    let summary = try MovieSummary(
      movie(header(timescale: 600, duration: 1500) + track(sizes("stsz", 0, 75)) + track(sizes("stz2", 8, 117))))
    #expect(summary.samples == 192 && summary.seconds == 2.5)
  }

  @Test func `A length that cannot be read is none`() throws {
    for head in [[], BoxBytes.fullBox("mvhd"), header(timescale: 0, duration: 9)] {
      let summary = try MovieSummary(movie(head + track(sizes("stsz", 4, 3))))
      #expect(summary.seconds == 0 && summary.samples == 3)
    }
    #expect(try MovieSummary(movie([])).samples == 0)
  }

  @Test func `Tracks without a table of sizes are refused with what they lack`() throws {
    #expect(throws: BoxError(.missing("stz2"), ["moov", "trak", "mdia", "minf", "stbl"], at: 32)) {
      try MovieSummary(movie(track([])))
    }
    #expect(throws: BoxError(.missing("mdia"), ["moov", "trak"], at: 8)) {
      try MovieSummary(movie(BoxBytes.box("trak")))
    }
    #expect(throws: BoxError.self) { try MovieSummary(movie(track(BoxBytes.fullBox("stsz", [0, 0, 0])))) }
  }

  @Test func `The greatest numbers that a file can state do no harm`() throws {
    let movie = try movie(
      header(timescale: 1, duration: .max) + track(sizes("stsz", 1, .max)) + track(sizes("stsz", 1, .max)))
    let summary = try MovieSummary(movie)
    #expect(summary.samples == 2 * Int(UInt32.max) && summary.seconds == Double(UInt32.max))
  }

  @Test func `A recording's own movie is told as it was built`() throws {
    var tables = MovieTables(tracks: [try SyntheticMedia.video()])
    let recording = SyntheticRecording([try SyntheticMedia.video()], seconds: 2, offset: 0)
    for fragment in recording.fragments { tables.append(fragment.runs, mediaOffset: 0) }
    let metadata = MovieMetadata(title: "", date: "", tool: "", creation: .zero)
    let head = try #require(MovieBuilder(tables, metadata: metadata)).movieHeader(contentLength: 1, blockSize: 1)
    let summary = try MovieSummary(try #require(BoxReader(head).first { $0.type == "moov" }))
    #expect(summary.samples == 60 && summary.seconds == 2)
  }
}
