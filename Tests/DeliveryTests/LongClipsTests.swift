import Base
@testable import Delivery
import Glibc
@testable import HTTP
import Logging
import NIOCore
import NIOHTTP1
import NIOPosix
@testable import Recording
import Storage
import Streams
import Support
import Testing

@Suite struct LongClipsTests {
  private func clip(_ bytes: Int) -> RecordingClip {
    let file = SharedFile(taking: open("/dev/null", O_RDONLY), kind: .disk)
    return RecordingClip(
      movieHeader: ByteBuffer(repeating: 1, count: bytes), media: FileRange(file: file, offset: 0, length: 0),
      seconds: 1)
  }

  private func address(_ last: Int) throws -> NetworkAddress {
    try #require(NetworkAddress(parsing: "192.0.2.\(last)"))
  }

  @Test func oneIsMadeAtATime() throws {
    let clips = LongClips(memory: .unlimited)
    var inner: FileRange?
    let outer = try clips.make(for: nil) {
      inner = try clips.make(for: nil) { clip(10) }?.head
      return clip(10)
    }
    #expect(outer?.head.length == 10 && inner == nil)
    #expect(try clips.make(for: nil) { clip(10) } != nil)
  }

  @Test func oneThatCannotBeMadeLeavesRoomForTheNext() throws {
    let clips = LongClips(memory: .unlimited)
    #expect(throws: ReplaySource.ClipFailure.empty) {
      try clips.make(for: nil) { throw ReplaySource.ClipFailure.empty }
    }
    #expect(try clips.make(for: nil) { clip(10) } != nil)
  }

  /// Forty readers that take nothing of theirs.
  @Test func headsThatAreNotTakenAreBounded() throws {
    let clips = LongClips(memory: .unlimited)
    var heads: [FileRange] = []
    for count in 0..<40 {
      guard let made = try clips.make(for: address(count), { clip(LongClips.maximumBytes / 8) }) else { continue }
      heads.append(made.head)
    }
    #expect(heads.count == 8 && clips.bytes == LongClips.maximumBytes)
    guard case .read(let bytes) = heads[3].file.read(at: heads[3].offset, count: 100) else {
      Issue.record("the head is not there")
      return
    }
    #expect(bytes == ByteBuffer(repeating: 1, count: 100))
    heads.removeLast()
    #expect(try clips.make(for: nil) { clip(1) } != nil)
  }

  /// Half of what is left: of 64 MiB 32, and then another one has half of the rest.
  @Test func oneAddressLeavesRoomToOthers() throws {
    let clips = LongClips(memory: .unlimited)
    var heads: [FileRange] = []
    func take(_ client: Int) throws -> Int {
      var count = 0
      while count < 100, let made = try clips.make(for: address(client), { clip(LongClips.maximumBytes / 64) }) {
        heads.append(made.head)
        count += 1
      }
      return count
    }
    #expect(try take(1) == 32)
    #expect(try take(2) == 16)
    #expect(try take(1) == 0)
    #expect(try take(3) == 8)
    #expect(heads.count == 56)
  }

  /// A request for something on a frozen disk is answered so.
  @Test func replayDoesNotWaitForAFrozenDisk() async throws {
    let folder = try TemporaryFolder()
    let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    let archive = RecordingArchive(folder: folder.path)
    let streams = StreamRegistry(
      settings: { _ in StreamSettings() }, clock: .system(), logger: logger
    ) { _, _, _, _ in [] }
    let routes = ReplayRoutes(
      archive: archive, streams: streams, layout: { _ in .interleaved }, longClips: LongClips(memory: .unlimited))
    var ends: [CInt] = [0, 0]
    try #require(pipe(&ends) == 0)
    let (reading, writing) = (ends[0], ends[1])
    for _ in 0..<2 {
      archive.threads.submit { _ in
        var byte: UInt8 = 0
        _ = read(reading, &byte, 1)
      }
    }
    let request = HTTPRequest(
      method: .get, target: RequestTarget(segments: ["recordings", "cam", "20261121T072410Z", "index.m3u8"]))
    let loop = MultiThreadedEventLoopGroup.singleton.any()
    guard case .later(let answer) = routes.respond(to: request, on: loop).kind else {
      Issue.record("it waited")
      return
    }
    let response = try await answer.get()
    #expect(response.status == .serviceUnavailable && response.headers.contains { $0.name == "Retry-After" })
    close(writing)
  }
}
