import NIOCore
import Testing

@testable import HTTP
@testable import Server

@Suite struct HTTP2FirstSettingsTests {
  private static let magic = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
  private static let acknowledgement = http2Frame(4, flags: 1)
  private static let settings = http2Frame(4, [0, 4, 0, 1, 0, 0])
  /// A frame of another kind, inside of which stands what looks like an acknowledgement.
  private static let data = http2Frame(0, stream: 1, acknowledgement + acknowledgement)
  private static let headers = http2Frame(1, flags: 4, stream: 1, [0x82, 0x84, 0x87])

  /// What NIO reads of those bytes when they come in pieces of that size, and whether the handler may leave then.
  private func read(_ bytes: [UInt8], piece: Int) -> (read: [UInt8], isOver: Bool) {
    var first = HTTP2FirstSettings()
    var read: [UInt8] = []
    var index = 0
    while index < bytes.count {
      let end = min(index + piece, bytes.count)
      // In a buffer that begins elsewhere.
      var buffer = ByteBuffer(bytes: [1, 2, 3] + bytes[index..<end])
      buffer.moveReaderIndex(forwardBy: 3)
      for part in first.receive(buffer) {
        #expect(part.readableBytes > 0)
        read += part.readableBytesView
      }
      index = end
      #expect(read.count >= index - 9, "what is held is the beginning of a header, or what was taken out")
    }
    return (read, first.isOver)
  }

  private func expect(_ bytes: [UInt8], becomes expected: [UInt8], isOver: Bool) {
    for piece in 1...bytes.count {
      let (read, over) = read(bytes, piece: piece)
      #expect(read == expected, "in pieces of \(piece)")
      #expect(over == isOver, "in pieces of \(piece)")
    }
  }

  @Test func theAcknowledgementComesBehindTheFirstFrameAndThePeersOwnIsTakenOut() {
    let others = Self.headers + Self.data
    expect(
      Self.magic + Self.settings + others + Self.acknowledgement + others,
      becomes: Self.magic + Self.settings + Self.acknowledgement + others + others, isOver: true)
    expect(
      Self.magic + Self.settings + Self.acknowledgement,
      becomes: Self.magic + Self.settings + Self.acknowledgement, isOver: true)
  }

  @Test func anEmptyFirstFrameIsOneAsWell() {
    expect(
      Self.magic + http2Frame(4) + Self.headers,
      becomes: Self.magic + http2Frame(4) + Self.acknowledgement + Self.headers,
      isOver: false)
  }

  @Test func aSecondAcknowledgementIsLeftForNIOToJudge() {
    let twice = Self.acknowledgement + Self.acknowledgement
    expect(Self.magic + Self.settings + twice, becomes: Self.magic + Self.settings + twice, isOver: true)
  }

  @Test func whatOnlyLooksLikeAnAcknowledgementIsPassed() {
    let others: [[UInt8]] = [
      http2Frame(4, flags: 1, [0, 4, 0, 1, 0, 0]), http2Frame(4, flags: 1, stream: 1),
      http2Frame(6, flags: 1, [UInt8](0..<8)),
      http2Frame(4), Self.data,
    ]
    for other in others {
      expect(
        Self.magic + Self.settings + other, becomes: Self.magic + Self.settings + Self.acknowledgement + other,
        isOver: false)
    }
  }

  @Test func aFirstFrameOfAnotherKindIsLeftForNIOToJudge() {
    for first in [Self.headers, Self.acknowledgement, http2Frame(4, stream: 1)] {
      let bytes = Self.magic + first + Self.settings + Self.acknowledgement
      expect(bytes, becomes: bytes, isOver: true)
    }
  }

  @Test func aFrameOfTheGreatestLengthIsWalkedOverAndNotKept() {
    let long = http2Frame(0, stream: 1, [UInt8](repeating: 0, count: 0xFF_FFFF))
    let (read, isOver) = read(Self.magic + Self.settings + long + Self.acknowledgement + Self.headers, piece: 100_000)
    #expect(isOver)
    #expect(read.count == (Self.magic + Self.settings + Self.acknowledgement + long + Self.headers).count)
  }

  // MARK: ours

  private func announced(_ frame: [UInt8]) -> [UInt8] {
    var buffer = ByteBuffer(bytes: [9] + frame)
    buffer.moveReaderIndex(forwardBy: 1)
    HTTP2FirstSettings.announce(100, in: &buffer)
    return Array(buffer.readableBytesView)
  }

  @Test func theNumberOfStreamsIsWrittenOverWhereverItStands() {
    let other: [UInt8] = [0, 6, 0, 1, 0, 3]
    let inner: [UInt8] = [0, 3, 0, 0, 4, 76]
    let outer: [UInt8] = [0, 3, 0, 0, 0, 100]
    let surroundings: [([UInt8], [UInt8])] = [([], []), (other, []), ([], other), (other, other)]
    for (before, after) in surroundings {
      #expect(announced(http2Frame(4, before + inner + after)) == http2Frame(4, before + outer + after))
    }
  }

  @Test func otherFramesAndWhatIsCutAreLeft() {
    let settings: [UInt8] = [0, 3, 0, 0, 4, 76]
    for frame in [
      http2Frame(4), http2Frame(0, settings), http2Frame(4, flags: 1, settings), http2Frame(4, [0, 3, 0, 0]),
    ] {
      #expect(announced(frame) == frame)
    }
    #expect(announced([0, 0, 6, 4]) == [0, 0, 6, 4])
  }
}
