import FMP4
@testable import Local
import NIOCore
import Testing

@Suite("The tracks of a file")
struct FileTrackTests {
  private func tracks(_ bytes: [UInt8]) throws -> [FileTrack] {
    let file = try TemporaryFile(bytes)
    return try MediaFile(file.path).tracks
  }

  @Test func `They are described as they were written`() throws {
    let media = try TemporaryFile.media()
    let found = try tracks(media.bytes)
    #expect(found.map(\.description.id) == [.video, .audio])
    #expect(found.map(\.description.codec) == media.tracks.map(\.codec))
    #expect(found.map(\.description.timescale) == media.tracks.map(\.timescale))
    #expect(found.first?.description.frameDuration == 1000 && found.last?.description.frameDuration == nil)
  }

  @Test func `Every sample comes back with its times and bytes`() throws {
    let media = try TemporaryFile.media()
    let temporary = try TemporaryFile(media.bytes)
    let file = try MediaFile(temporary.path)
    var units: [MediaFile.Unit] = []
    while let unit = file.next() { units.append(unit) }
    #expect(file.hasSeenAllTracks && file.takeBroken().isEmpty && file.rest == nil)
    for track in [TrackID.video, .audio] {
      let (found, written) = (units.filter { $0.track == track }, media.samples.filter { $0.track == track })
      #expect(found.map(\.decodeTime) == written.map(\.decodeTime))
      #expect(found.map(\.payload) == written.map(\.payload))
      #expect(found.map(\.isSync) == written.map(\.isSync))
    }
  }

  @Test func `A frame whose lengths lie is left out and counted, and the others are read`() throws {
    var media = try TemporaryFile.media()
    // The third frame's first NAL unit is to be longer than the frame.
    let third = try #require(media.samples.filter { $0.track == .video }.dropFirst(2).first)
    let bytes = Array(third.payload.readableBytesView)
    let place = try #require(
      media.bytes.indices.first { media.bytes[$0...].starts(with: bytes) })
    media.bytes.replaceSubrange(place..<place + 4, with: [0x7F, 0xFF, 0xFF, 0xFF])
    let temporary = try TemporaryFile(media.bytes)
    let file = try MediaFile(temporary.path)
    var frames = 0
    while let unit = file.next() { frames += unit.track == .video ? 1 : 0 }
    #expect(frames == 29 && file.takeBroken() == [.video] && file.takeBroken().isEmpty)
  }

  @Test func `A file that ends anywhere is read so far as it goes`() throws {
    let media = try TemporaryFile.media()
    for part in [0.3, 0.5, 0.9, 0.99] {
      let temporary = try TemporaryFile(Array(media.bytes.prefix(Int(Double(media.bytes.count) * part))))
      let file = try MediaFile(temporary.path)
      var count = 0
      while file.next() != nil { count += 1 }
      #expect(count > 0 && count < media.samples.count, "\(part)")
    }
  }

  @Test func `What is no media file is refused with the reason`() throws {
    let text = try TemporaryFile(Array("This is not a film.\n".utf8))
    #expect {
      _ = try MediaFile(text.path)
    } throws: { error in
      if case FileError.unknownFormat(text.path, _) = error { true } else { false }
    }
    #expect(throws: FileError.noFile("/tmp")) { _ = try MediaFile("/tmp") }
    #expect(throws: FileError.noFile("/dev/null")) { _ = try MediaFile("/dev/null") }
    #expect(throws: FileError.unreadable("/tmp/weir-none.mp4", code: 2)) { _ = try MediaFile("/tmp/weir-none.mp4") }
  }
}
