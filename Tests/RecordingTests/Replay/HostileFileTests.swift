@testable import FMP4
import Glibc
import NIOCore
import Publishing
@testable import Recording
import RecordingFiles
import Storage
import Support
import Testing

/// Files that another program put into the folder of recordings.
@Suite struct HostileFileTests {
  private static func box(_ type: String, _ payload: [UInt8] = [], size: UInt64? = nil) -> [UInt8] {
    var bytes = ByteBuffer()
    if let size {
      bytes.writeInteger(1 as UInt32)
      bytes.writeString(type)
      bytes.writeInteger(size)
    } else {
      bytes.writeInteger(UInt32(payload.count + 8))
      bytes.writeString(type)
    }
    return Array(bytes.readableBytesView) + payload
  }

  private static func load(_ bytes: [UInt8]) throws -> ReplaySource? {
    let file = SharedFile(taking: memfd_create("test", UInt32(MFD_CLOEXEC)), kind: .memory)
    try #require(write(file.descriptor, bytes, bytes.count) == bytes.count)
    #expect(RecordingMetadata.read(file.descriptor, size: UInt64(bytes.count)) == nil)
    let stream = try #require(StreamName("cam"))
    return try RecordingArchive.load(
      file, size: UInt64(bytes.count), stream: stream, name: "20261121T072410Z")
  }

  /// ISO/IEC 14496-12 §4.2.2: a size of 64 bits counts the sixteen bytes of its own header.
  @Test(arguments: ["free", "skip", "mdat", "moov", "ftyp"], 0...17 as ClosedRange<UInt64>)
  func aBoxThatSaysItIsSmallerThanItsHeader(_ type: String, _ size: UInt64) throws {
    let rest = [UInt8](repeating: 0, count: 4000)
    #expect(try Self.load(Self.box("ftyp", Array("isom\0\0\0\0".utf8)) + Self.box(type, size: size) + rest) == nil)
    #expect(try Self.load(Self.box("moov") + Self.box(type, size: size) + rest) == nil)
  }

  @Test func anIndexWhoseSegmentsLieInAnotherOrderIsNotBelieved() throws {
    let tracks = [try SyntheticMedia.video()]
    func index(_ offsets: [UInt64], tracksAt: UInt64 = 0) -> RecordingIndex? {
      var index = RecordingIndex()
      index.change(to: InitSegment(version: 1, tracks: tracks), at: tracksAt)
      for (number, offset) in offsets.enumerated() {
        let start = MediaTime(milliseconds: Int64(number) * 2000)
        let fragment = Fragment(
          sequenceNumber: UInt32(number), startsSegment: true, isIndependent: true, leader: .video, runs: [],
          payloads: [], start: start, duration: MediaTime(milliseconds: 2000),
          end: start + MediaTime(milliseconds: 2000))
        index.add(fragment, number: number, range: offset..<offset + 100, anchor: nil)
      }
      index.finish()
      return RecordingIndex(stored: index.stored, length: 1000) { _ in tracks }
    }
    #expect(index([0, 100, 500])?.segments.count == 3)
    #expect(index([0, 500, 100]) == nil)
    #expect(index([0, 50, 500]) == nil)
    #expect(index([24, 200, 500], tracksAt: 24) != nil)
    #expect(index([0, 200, 500], tracksAt: 24) == nil, "media cannot be read before what describes them")
  }
}
