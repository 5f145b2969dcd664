@testable import FMP4
import NIOCore
import Support
import Testing

@Suite("Init segments, box by box")
struct InitBoxesTests {
  private func boxes(_ tracks: [TrackDescription]) throws -> (brands: [String], moov: Box) {
    let parsed = try #require(Box.parse(Array(InitBoxes.initSegment(of: tracks).readableBytesView)))
    try #require(parsed.map(\.type) == ["ftyp", "moov"])
    let names = stride(from: 0, to: parsed[0].payload.count, by: 4).map {
      String(decoding: parsed[0].payload[$0..<$0 + 4], as: UTF8.self)
    }
    // The major brand, the version, and those that it is compatible with.
    #expect(names[0] == "iso6" && parsed[0].number(4) == 0)
    return (Array(names[2...]), parsed[1])
  }

  private func opus(_ id: TrackID) throws -> TrackDescription {
    TrackDescription(id: id, codec: Codec(try Opus.Configuration(channels: 2, preSkip: 312)), timescale: 48_000)
  }

  /// ISO/IEC 23000-19 §7.2: CMAF tracks have one track each.
  @Test func `The brand of CMAF is of files with one track`() throws {
    let (video, audio) = (try SyntheticMedia.video(), try SyntheticMedia.audio())
    #expect(try boxes([video]).brands == ["iso6", "mp41", "cmfc", "avc1"])
    #expect(try boxes([audio]).brands == ["iso6", "mp41", "cmfc"])
    #expect(try boxes([video, audio]).brands == ["iso6", "mp41", "avc1"])
    #expect(try boxes([opus(.audio)]).brands == ["iso6", "mp41", "cmfc", "Opus"])
  }

  @Test func `Each track has defaults, and the next one a number that is free`() throws {
    let tracks = [try SyntheticMedia.video(), try opus(TrackID(8)), try SyntheticMedia.audio()]
    let moov = try boxes(tracks).moov
    #expect(try #require(moov.first("mvhd")).number(96) == 9)
    #expect(moov.all("trak").compactMap { $0.first("tkhd")?.number(12) } == [1, 8, 2])
    #expect(try #require(moov.first("mvex")).all("trex").map { $0.number(4) } == [1, 8, 2])
  }

  /// §8.7.5, §8.8.1: samples follow in fragments, so the tables are there and have no entry.
  @Test func `The sample tables are empty`() throws {
    for track in try boxes([SyntheticMedia.video(), SyntheticMedia.audio()]).moov.all("trak") {
      let tables = try #require(track.first("mdia/minf/stbl"))
      #expect(tables.children.map(\.type) == ["stsd", "stts", "stsc", "stsz", "stco"])
      for table in tables.children.dropFirst() {
        #expect(table.payload.allSatisfy { $0 == 0 }, "\(table.type)")
      }
    }
  }

  /// The room is worked out before. Writing beyond it ends the program, so the most tracks and the longest texts are tried.
  @Test func `The most tracks of all kinds find room`() throws {
    var tracks: [TrackDescription] = []
    for number in 1...16 {
      var video = try SyntheticMedia.video()
      video.statedColor = VideoColor(
        description: ColorDescription(primaries: 9, transfer: 18, matrix: 9, range: .limited),
        masteringDisplay: MasteringDisplay(
          red: .init(x: 1, y: 2), green: .init(x: 3, y: 4), blue: .init(x: 5, y: 6), white: .init(x: 7, y: 8),
          maximumLuminance: 9, minimumLuminance: 1), lightLevel: ContentLightLevel(maximum: 1, maximumAverage: 1))
      tracks.append(
        TrackDescription(
          id: TrackID(.video, number), codec: video.codec, timescale: 90_000, language: "deu", role: .description,
          rotation: .clockwise270, statedColor: video.statedColor))
      tracks.append(
        TrackDescription(
          id: TrackID(.audio, number), codec: try SyntheticMedia.audio().codec, timescale: 48_000, language: "deu",
          role: .hearingImpaired))
    }
    let moov = try boxes(tracks).moov
    #expect(moov.all("trak").count == 32 && moov.all("trak").allSatisfy { $0.first("udta/kind") != nil })
  }

  @Test func `A segment shows the tracks that it is asked for`() throws {
    let tracks = [try SyntheticMedia.video(), try SyntheticMedia.audio(), try SyntheticMedia.audio(TrackID(4))]
    let segment = InitSegment(version: 1, tracks: tracks)
    func shown(_ bytes: ByteBuffer) throws -> [Int] {
      let moov = try #require(Box.parse(Array(bytes.readableBytesView))?.last)
      return moov.all("trak").compactMap { $0.first("tkhd")?.number(12) }
    }
    #expect(try shown(segment.whole) == [1, 2, 4] && shown(segment.interleaved) == [1, 2])
    #expect(try shown(segment.showing([tracks[0], tracks[2]])) == [1, 4] && shown(segment.single(tracks[2])) == [4])
  }
}
