import Glibc
@testable import Local
import Testing

@Suite("Why a file cannot be a source")
struct FileErrorTests {
  @Test func `Every text is one line that names the file`() {
    let errors: [FileError] = [
      .unreadable("/a/b.mp4", code: EACCES), .noFile("/a/b.mp4"), .unknownFormat("/a/b.mp4", reason: "Invalid data"),
      .unsupportedCodec("/a/b.mp4", kind: "audio", codec: "mp3"), .invalidCodec("/a/b.mp4", reason: "no set"),
      .empty("/a/b.mp4"), .noUsableFrame("/a/b.mp4"), .changed("/a/b.mp4"),
    ]
    let texts = errors.map { "\($0)" }
    #expect(Set(texts).count == errors.count)
    #expect(texts.allSatisfy { $0.contains("/a/b.mp4") && !$0.contains("\n") })
  }

  @Test func `The system's and the library's words are in it`() {
    #expect("\(FileError.unreadable("x", code: ENOENT))".contains("No such file or directory"))
    #expect("\(FileError.unknownFormat("x", reason: "Invalid data"))".contains("(Invalid data)"))
    #expect("\(FileError.unsupportedCodec("x", kind: "audio", codec: "mp3"))".hasPrefix("the audio of x is mp3"))
  }
}
