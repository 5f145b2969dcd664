import FMP4
import NIOCore
@testable import Publishing
import Testing

@Suite("The beginning of a publication, held back")
struct StartupBufferTests {
  private func frame(_ time: Int64, track: TrackID = .video, bytes: Int = 10) -> MediaUnit {
    .video(
      VideoTrack.Unit(
        track: track, time: time, composition: 0, isSync: true, isDisposable: false,
        payload: ByteBuffer(repeating: 0, count: bytes), isMoved: false))
  }

  private func audio(_ time: Int64, bytes: Int = 5) -> MediaUnit {
    .audio(
      AudioTrack.Unit(
        track: .audio, time: time, duration: 1024, payload: ByteBuffer(repeating: 0, count: bytes), isMoved: false))
  }

  @Test func `Units come out once, in the order of arrival`() {
    var buffer = StartupBuffer()
    #expect(buffer.isEmpty && buffer.firstFrame == nil)
    for unit in [audio(3), frame(2), audio(1)] { buffer.append(unit) }
    #expect(!buffer.isEmpty && buffer.firstFrame?.time == 2)
    let taken = buffer.takeAll()
    #expect(taken.map(\.time) == [3, 2, 1] && taken.map(\.kind) == [.audio, .video, .audio])
    #expect(taken.map(\.track) == [.audio, .video, .audio] && taken.map(\.byteCount) == [5, 10, 5])
    #expect(buffer.isEmpty && buffer.takeAll().isEmpty)
  }

  @Test func `It is full with so many units`() {
    var buffer = StartupBuffer()
    for index in 1..<PublicationLimits.heldSamples { buffer.append(audio(Int64(index))) }
    #expect(!buffer.isFull)
    buffer.append(audio(0))
    #expect(buffer.isFull)
    _ = buffer.takeAll()
    #expect(!buffer.isFull)
  }

  @Test func `It is full with so many bytes, and no more when a track is forgotten`() {
    var buffer = StartupBuffer()
    buffer.append(frame(0, bytes: PublicationLimits.heldBytes - 5))
    #expect(!buffer.isFull)
    buffer.append(audio(0))
    #expect(buffer.isFull)
    var out: [PublicationAction] = []
    buffer.forget(.audio, to: &out)
    #expect(!buffer.isFull && !buffer.isEmpty)
    buffer.append(audio(1, bytes: 4))
    #expect(!buffer.isFull)
    buffer.forget(.video, to: &out)
    #expect(buffer.takeAll().map(\.time) == [1])
    let early = out.compactMap { action -> MediaKind? in
      if case .inBand(.early(let kind)) = action { kind } else { nil }
    }
    #expect(early == [.audio, .video])
  }

  @Test func `A frame is extended up to a length, until the buffer is full, and without copies`() {
    var buffer = StartupBuffer()
    let slice = ByteBuffer(repeating: 1, count: 100)
    var taken = [buffer.extend(.video, by: slice, most: 1000)]
    buffer.append(frame(0, bytes: 300))
    var places: [UInt?] = []
    for _ in 0..<8 {
      taken.append(buffer.extend(.video, by: slice, most: 1000))
      places.append(buffer.firstFrame?.payload.withUnsafeReadableBytes { UInt(bitPattern: $0.baseAddress) })
    }
    // The first time none waits, and the last time it would be too long.
    #expect(taken == [false] + [Bool](repeating: true, count: 7) + [false] && buffer.byteCount == 1000)
    // Its room doubles.
    #expect(zip(places, places.dropFirst()).count { $0 != $1 } <= 2)
    buffer.most = 1000
    let isTaken = buffer.extend(.video, by: slice, most: 5000)
    #expect(buffer.isFull && !isTaken)
  }

  @Test func `It is full with fewer bytes where the server has less room, also after it was emptied`() {
    var buffer = StartupBuffer()
    buffer.most = 20
    for _ in 0..<2 {
      buffer.append(frame(0))
      #expect(!buffer.isFull && buffer.byteCount == 10)
      buffer.append(frame(1))
      #expect(buffer.isFull && buffer.takeAll().count == 2)
    }
  }

  @Test func `The first unit of a track is the first to arrive that is not too early`() {
    var buffer = StartupBuffer()
    for unit in [frame(7, track: TrackID(3)), frame(5), audio(6), frame(4), frame(9)] { buffer.append(unit) }
    #expect(buffer.firstTime(of: .video, from: 0) == 5)
    #expect(buffer.firstTime(of: .video, from: 5) == 5)
    #expect(buffer.firstTime(of: .video, from: 6) == 9)
    #expect(buffer.firstTime(of: .video, from: 10) == nil && buffer.firstTime(of: TrackID(8), from: 0) == nil)
    #expect(buffer.firstFrame?.track == TrackID(3))
  }
}
