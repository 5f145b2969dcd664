import FMP4
@testable import Local
import NIOCore
import Support
import Testing

@Suite("What is shown while a publisher is away")
struct FallbackMediaTests {
  private func isFilm(_ media: FallbackMedia, _ path: String) -> Bool {
    if case .film(path) = media { true } else { false }
  }

  @Test func `A picture is known by its first bytes, whatever its name is`() throws {
    let file = try TemporaryFile(PictureBytes.png(width: 64, height: 36, grey: PictureBytes.tiles))
    guard case .picture(let picture) = try FallbackMedia(path: file.path) else {
      Issue.record("a PNG is a picture")
      return
    }
    #expect(picture.tracks[0].codec.videoFormat?.width == 64 && picture.video.count == 20)
  }

  @Test func `A film with a key frame is one`() throws {
    let file = try TemporaryFile(try TemporaryFile.media().bytes)
    #expect(isFilm(try FallbackMedia(path: file.path), file.path))
  }

  @Test func `What is neither is refused with the reason`() throws {
    let empty = try TemporaryFile([])
    #expect(throws: FallbackError.empty(empty.path)) { _ = try FallbackMedia(path: empty.path) }
    let text = try TemporaryFile(Array("BMW makes cars, and this is a text.\n".utf8))
    #expect {
      _ = try FallbackMedia(path: text.path)
    } throws: { error in
      if case FallbackError.unknownFormat(text.path, _) = error { true } else { false }
    }
    #expect(throws: FileError.noFile("/tmp")) { _ = try FallbackMedia(path: "/tmp") }
    #expect(throws: FileError.unreadable("/tmp/weir-none.mp4", code: 2)) {
      _ = try FallbackMedia(path: "/tmp/weir-none.mp4")
    }
    let broken = try TemporaryFile(Array(PictureBytes.png(width: 64, height: 36) { _, _ in 0 }.prefix(100)))
    #expect {
      _ = try FallbackMedia(path: broken.path)
    } throws: { error in
      if case FallbackError.damaged(broken.path, .png, _) = error { true } else { false }
    }
  }

  @Test func `A film without video is refused, and one without a key frame`() throws {
    // Two seconds of AAC in frames of ADTS: Low Complexity, 48 kHz, two channels.
    let silence = Array(
      try StillPicture(testCard: TestSourceSettings(width: 160, height: 90)).silence.payload.readableBytesView)
    let length = silence.count + 7
    let header = [0xFF, 0xF1, 0x4C, 0x80, UInt8(length >> 3), UInt8(length & 7) << 5 | 0x1F, 0xFC]
    let audio = try TemporaryFile(Array(repeatElement(header + silence, count: 94).joined()))
    #expect(throws: FallbackError.noVideo(audio.path)) { _ = try FallbackMedia(path: audio.path) }
    let media = try TemporaryFile.media()
    // Only what is before the first fragment.
    let fragment = try #require(media.bytes.indices.first { media.bytes[$0...].starts(with: "moof".utf8) })
    let head = try TemporaryFile(Array(media.bytes.prefix(fragment - 4)))
    #expect(throws: FallbackError.noKeyFrame(head.path)) { _ = try FallbackMedia(path: head.path) }
  }

  @Test func `Every text is one line that names the file`() {
    let size = PictureSize(width: 9000, height: 9)
    let errors: [FallbackError] = [
      .empty("/a/b"), .unknownFormat("/a/b", reason: "Invalid data"), .noPicture("/a/b"),
      .tooLarge("/a/b", bytes: 40 << 20), .tooManyPixels("/a/b", size), .tooSmall("/a/b", size),
      .damaged("/a/b", .png, reason: "Invalid data"), .noVideo("/a/b"), .noKeyFrame("/a/b"),
    ]
    let texts = errors.map { "\($0)" }
    #expect(Set(texts).count == errors.count)
    #expect(texts.allSatisfy { $0.contains("/a/b") && !$0.contains("\n") })
    #expect(texts[4].contains("9000×9 pixels") && texts[4].contains("8192×8192"))
  }
}
