@testable import FMP4
import NIOCore
import Support
import Testing

@Suite("What a movie says its tracks are for")
struct TrackKindTests {
  private static let main = BoxBytes.fullBox("kind", Array("urn:mpeg:dash:role:2011\0main\0".utf8))
  private static let description = BoxBytes.fullBox("kind", Array("urn:mpeg:dash:role:2011\0description\0".utf8))

  private func tracks(_ bytes: ByteBuffer) throws -> [BoxView] {
    let movie = try #require(BoxReader(bytes).first { $0.type == "moov" })
    return movie.boxes().filter { $0.type == "trak" }
  }

  private func audio(_ number: Int, _ role: TrackRole) throws -> TrackDescription {
    var track = try SyntheticMedia.audio(TrackID(.audio, number))
    track.role = role
    return track
  }

  private func role(ofTrackWith data: [UInt8]) throws -> TrackRole {
    let track = ByteBuffer(bytes: BoxBytes.box("trak", data))
    return TrackKind.role(try #require(BoxReader(track).first { _ in true }))
  }

  @Test func `Roles that are written are read again`() throws {
    let stated = try [audio(1, .main), audio(2, .description), audio(3, .hearingImpaired), audio(4, .main)]
    let written = try tracks(InitSegment(version: 1, tracks: stated).whole)
    #expect(written.map(TrackKind.role) == stated.map(\.role))
    #expect(try written.map { try MovieReader.track($0).role } == stated.map(\.role))
    let texts = try written.map { try $0.child("udta", "kind").payload }.map { String(buffer: $0) }
    #expect(
      texts.map { $0.split(separator: "\0").last } == [
        "main", "description", "enhanced-audio-intelligibility", "alternate",
      ])
  }

  @Test func `The only track of its kind says nothing, unless it has a purpose`() throws {
    let plain = try tracks(InitSegment(version: 1, tracks: [SyntheticMedia.video(), audio(1, .main)]).whole)
    #expect(plain.allSatisfy { $0.first("udta") == nil })
    let described = try tracks(InitSegment(version: 1, tracks: [audio(1, .description)]).whole)
    #expect(described.map(TrackKind.role) == [.description])
  }

  @Test func `Of several kinds the first with a known purpose counts`() throws {
    #expect(try role(ofTrackWith: BoxBytes.box("udta", Self.main + Self.description)) == .description)
    #expect(try role(ofTrackWith: BoxBytes.box("udta", Self.main)) == .main)
  }

  @Test func `What is cut short or of another scheme is no role`() throws {
    for count in 0..<Self.description.count {
      let cut = BoxBytes.box("udta", Array(Self.description.prefix(count)))
      #expect(try role(ofTrackWith: cut) == .main, "\(count) bytes")
    }
    let foreign = BoxBytes.fullBox("kind", Array("urn:example\0description\0".utf8))
    #expect(try role(ofTrackWith: BoxBytes.box("udta", foreign)) == .main)
    #expect(try role(ofTrackWith: []) == .main)
  }
}
