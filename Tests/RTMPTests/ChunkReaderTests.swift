import Base
import NIOCore
@testable import RTMP
import Support
import Testing

@Suite("Chunks to messages")
struct ChunkReaderTests {
  typealias S = RTMPScript

  /// All messages in `bytes`, fed in pieces.
  private func read(_ bytes: [UInt8], piece: Int = .max, trusted: Bool = true) throws(WireError) -> [RTMPMessage] {
    var reader = ChunkReader()
    reader.trusted = trusted
    var messages: [RTMPMessage] = []
    var index = 0
    while index < bytes.count {
      let end = min(piece == .max ? bytes.count : index + piece, bytes.count)
      var buffer = ByteBuffer(bytes: bytes[index..<end])
      while let message = try reader.next(&buffer, now: 0) { messages.append(message) }
      #expect(buffer.readableBytes == 0)
      index = end
    }
    return messages
  }

  private func payload(_ count: Int, seed: UInt8 = 0) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7) &+ seed }
  }

  @Test(arguments: [2, 3, 63, 64, 65, 319, 320, 65_599])
  func everyFormOfAChunkStreamNumberIsRead(_ chunkStream: Int) throws {
    let messages = try read(S.message(9, payload(300), time: 5, chunkStream: chunkStream))
    #expect(messages.count == 1)
    #expect(messages.first?.timestamp == 5)
    #expect(messages.first.map { Array($0.payload.readableBytesView) } == payload(300))
  }

  @Test func anyCutOfTheBytesGivesTheSameMessages() throws {
    var bytes: [UInt8] = []
    for (index, chunkStream) in [3, 70, 400, 4].enumerated() {
      bytes += S.message(9, payload(500 + index), time: 0xFF_FFF0 + UInt32(index) * 8, chunkStream: chunkStream)
      // Types 1, 2 and 3 on the same stream.
      bytes += S.basicHeader(1, chunkStream) + S.u24(10) + S.u24(3) + [8] + [1, 2, 3]
      bytes += S.basicHeader(2, chunkStream) + S.u24(20) + [4, 5, 6]
      bytes += S.basicHeader(3, chunkStream) + [7, 8, 9]
    }
    let whole = try read(bytes)
    #expect(whole.count == 16)
    for piece in [1, 2, 3, 5, 7, 11, 13, 17, 64, 129] { #expect(try read(bytes, piece: piece) == whole) }
  }

  @Test func deltasAddUp() throws {
    let bytes =
      S.message(8, [1], time: 1000) + S.basicHeader(1, 4) + S.u24(10) + S.u24(1) + [8, 2] + S.basicHeader(2, 4)
      + S.u24(30) + [3] + S.basicHeader(3, 4) + [4]
    #expect(try read(bytes).map(\.timestamp) == [1000, 1010, 1040, 1070])
  }

  @Test func aType3MessageAfterType0RepeatsTheTimestampAsDelta() throws {
    #expect(try read(S.message(8, [1], time: 40) + S.basicHeader(3, 4) + [2]).map(\.timestamp) == [40, 80])
  }

  @Test(arguments: [true, false])
  func extendedTimestampsAreReadOnType3ChunksWhetherRepeatedOrNot(_ repeats: Bool) throws {
    let bytes = S.message(9, payload(1000), time: 0x0123_4567, repeatsExtendedTime: repeats)
    for piece in [Int.max, 1, 3, 130] {
      let messages = try read(bytes, piece: piece)
      #expect(messages.map(\.timestamp) == [0x0123_4567])
      #expect(messages.first.map { Array($0.payload.readableBytesView) } == payload(1000))
    }
  }

  @Test func theBoundaryOf24BitsIsCrossedBothWays() throws {
    for time: UInt32 in [0xFF_FFFE, 0xFF_FFFF, 0x100_0000, 0xFFFF_FFFF] {
      #expect(try read(S.message(9, payload(200), time: time)).map(\.timestamp) == [time])
    }
    // An extended delta, and the wrap of 32 bits.
    let bytes =
      S.message(8, [1], time: 0xFFFF_FFF0) + S.basicHeader(2, 4) + S.u24(0xFF_FFFF) + S.u32(0x0100_0010) + [2]
    #expect(try read(bytes).map(\.timestamp) == [0xFFFF_FFF0, 0x0100_0000])
  }

  @Test func messagesMayInterleave() throws {
    let a = S.message(9, payload(256), time: 1, chunkStream: 6)
    let b = S.message(8, payload(200, seed: 3), time: 2, chunkStream: 4)
    // First chunk of each is 12 + 128 bytes, the rest 1 + n.
    let bytes = a[..<140] + b[..<140] + a[140...] + b[140...]
    let messages = try read(Array(bytes))
    #expect(messages.map(\.type) == [9, 8])
    #expect(messages.map(\.payload.readableBytes) == [256, 200])
  }

  @Test func theChunkSizeMayChangeAtAnyTime() throws {
    let bytes =
      S.message(1, S.u32(1), stream: 0, chunkStream: 2) + S.message(9, payload(20), chunkSize: 1)
      + S.message(1, S.u32(100_000), stream: 0, chunkStream: 2, chunkSize: 1)
      + S.message(9, payload(70_000), chunkSize: 100_000)
      + S.message(1, S.u32(0x7FFF_FFFF), stream: 0, chunkStream: 2) + S.message(9, payload(80_000), chunkSize: 1 << 24)
    for piece in [Int.max, 1000, 7] {
      #expect(
        try read(bytes, piece: piece).filter { $0.type == 9 }.map(\.payload.readableBytes) == [20, 70_000, 80_000])
    }
  }

  @Test(arguments: [0, 0x8000_0000, 0xFFFF_FFFF] as [UInt32])
  func chunkSizesThatCannotBeAreRefused(_ size: UInt32) {
    #expect(throws: WireError.self) { try read(S.message(1, S.u32(size), stream: 0, chunkStream: 2)) }
  }

  @Test func anAbortedMessageIsForgotten() throws {
    let bytes =
      Array(S.message(9, payload(500), chunkStream: 6)[..<140]) + S.message(2, S.u32(6), stream: 0, chunkStream: 2)
      + S.message(9, payload(10), chunkStream: 6)
    #expect(try read(bytes).filter { $0.type == 9 }.map(\.payload.readableBytes) == [10])
  }

  @Test func sixtyFourChunkStreamsAreAcceptedAndOneMoreIsRefused() throws {
    let bytes = (0..<64).flatMap { S.message(8, [1], chunkStream: $0 + 3) }
    #expect(try read(bytes).count == 64)
    #expect(throws: WireError.self) { try read(bytes + S.message(8, [1], chunkStream: 70)) }
  }

  @Test func sizesUpToTheLimitAreAcceptedAndOneMoreIsRefused() throws {
    func begin(_ type: UInt8, _ size: Int) -> [UInt8] {
      S.basicHeader(0, 5) + S.u24(0) + S.u24(UInt32(size)) + [type, 1, 0, 0, 0, 0xAA]
    }
    #expect(try read(begin(9, 16_777_215)).isEmpty)
    #expect(try read(begin(20, 65_536)).isEmpty)
    #expect(throws: WireError.self) { try read(begin(20, 65_537)) }
    #expect(throws: WireError.self) { try read(begin(18, 65_537)) }
    #expect(throws: WireError.self) { try read(begin(4, 65_537)) }
  }

  @Test func partialMessagesBeforePublishingAreBoundedTogether() throws {
    // 64 streams that announce 16 MiB each and send a little more than the limit together.
    var bytes = S.message(1, S.u32(8192), stream: 0, chunkStream: 2)
    for stream in 3..<60 {
      bytes += S.basicHeader(0, stream) + S.u24(0) + S.u24(0xFF_FFFF) + [9, 1, 0, 0, 0] + payload(8192)
    }
    #expect(throws: WireError(.limit, "unfinished messages hold more than 16384 bytes")) {
      try read(bytes, trusted: false)
    }
    #expect(try read(bytes, trusted: true).count == 1)
  }

  @Test func aMessageIsNotReservedByItsAnnouncedSize() throws {
    var reader = ChunkReader()
    var buffer = ByteBuffer(bytes: S.basicHeader(0, 5) + S.u24(0) + S.u24(3000) + [9, 1, 0, 0, 0] + payload(128))
    #expect(try reader.next(&buffer, now: 0) == nil)
    var rest = ByteBuffer()
    for index in stride(from: 128, to: 3000, by: 128) {
      rest.writeBytes([0xC5] + payload(min(128, 3000 - index)))
    }
    let message = try #require(try reader.next(&rest, now: 0))
    #expect(message.payload.readableBytes == 3000)
    #expect(message.payload.capacity <= 4096)
  }

  @Test func headersThatReferToNothingAreRefused() {
    #expect(throws: WireError.self) { try read(S.basicHeader(3, 9) + [1, 2, 3, 4]) }
    #expect(throws: WireError.self) { try read(S.basicHeader(2, 9) + [1, 2, 3, 4]) }
  }

  @Test func aFreshStreamMayBeginWithType1() throws {
    #expect(try read(S.basicHeader(1, 9) + S.u24(7) + S.u24(1) + [8, 0xAA]).map(\.timestamp) == [7])
  }

  @Test func aMessageInsideAnUnfinishedOneIsRefused() {
    let begun = Array(S.message(9, payload(500), chunkStream: 6)[..<140])
    #expect(throws: WireError.self) { try read(begun + S.message(9, payload(10), chunkStream: 6)) }
  }

  @Test func chunksOfOneByteAreMetered() throws {
    var reader = ChunkReader()
    reader.trusted = true
    var setting = ByteBuffer(bytes: S.message(1, S.u32(1), stream: 0, chunkStream: 2))
    _ = try reader.next(&setting, now: 0)
    let bytes = S.message(9, payload(10_000), chunkSize: 1)
    var messages = 0
    let error = #expect(throws: WireError.self) {
      for _ in 0..<40 {
        var buffer = ByteBuffer(bytes: bytes)
        while try reader.next(&buffer, now: 0) != nil { messages += 1 }
      }
    }
    #expect(error?.code == .limit)
    // 200 000 at once, and as many as time allows afterwards.
    #expect((19...20).contains(messages))
  }

  @Test func anEmptyMessageIsAMessage() throws {
    #expect(try read(S.message(9, []) + S.message(8, [1])).map(\.payload.readableBytes) == [0, 1])
  }
}
