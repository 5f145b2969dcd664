import Base
import FMP4
@testable import Local
import NIOCore
import Support
import Synchronization
import Testing

@Suite struct PassthroughTests {
  /// What came through.
  private final class Sink: EncodedFrameSink {
    struct Frame: Equatable {
      var time: MonotonicTime
      var isSync: Bool
      var bytes: [UInt8]
    }

    let frames = Mutex<[Frame]>([])
    let descriptions = Mutex(0)

    func describe(video codec: Codec, rotation: Rotation) { descriptions.withLock { $0 += 1 } }

    func video(
      presentation: MonotonicTime, decode: MonotonicTime, isSync: Bool, isDisposable: Bool, payload: ByteBuffer
    ) {
      frames.withLock { $0.append(Frame(time: decode, isSync: isSync, bytes: Array(payload.readableBytesView))) }
    }
  }

  private static let start: [UInt8] = [0, 0, 0, 1]
  /// Of 320×180 as x264 writes them.
  private static let sets: [UInt8] =
    start + [
      0x67, 0x64, 0x00, 0x0B, 0xAC, 0xB4, 0x0A, 0x0C, 0xFC, 0xF0, 0x80, 0x00, 0x00, 0x03, 0x00, 0x80, 0x00, 0x00, 0x05,
      0x47, 0x8A, 0x15, 0x50,
    ] + start + [0x68, 0xEF, 0x0F, 0xCB]
  private static let delimiter: [UInt8] = start + [9, 0xF0]
  private static let key: [UInt8] = [0x65, 0x88, 0x84, 0x21, 0xA0]
  private static let other: [UInt8] = [0x41, 0x9A, 0x21, 0x42]

  @Test func framesPassUntouchedFromTheFirstKeyFrameOn() {
    let (sink, passthrough) = (Sink(), Passthrough(rotation: .none))
    var beginnings = 0
    let shots = [
      Self.start + Self.other, Self.delimiter + Self.sets + Self.start + Self.key,
      Self.delimiter + Self.start + Self.other,
      [],
    ]
    let passed = shots.enumerated().map { number, shot in
      shot.withUnsafeBytes { passthrough.pass($0, at: .at(Int64(number)), sink) { beginnings += 1 } }
    }
    #expect(passed == [false, true, true, false] && beginnings == 1)
    #expect(
      sink.frames.withLock { $0 } == [
        Sink.Frame(time: 1, isSync: true, bytes: [0, 0, 0, 5] + Self.key),
        Sink.Frame(time: 2, isSync: false, bytes: [0, 0, 0, 4] + Self.other),
      ])
    #expect(sink.descriptions.withLock { $0 } == 1)
  }
}
