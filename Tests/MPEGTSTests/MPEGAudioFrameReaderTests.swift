import FMP4
@testable import MPEGTS
import NIOCore
import Testing

/// MP1, MP2 and MP3 in transport streams.
@Suite struct MPEGAudioFrameReaderTests {
  private func frames(_ bytes: [UInt8], pieces size: Int, isAligned: Bool = true) -> (damaged: Int, [AudioFrame]) {
    var reader = MPEGAudioFrameReader()
    var frames: [AudioFrame] = []
    if isAligned { reader.begin() }
    for start in stride(from: 0, to: bytes.count, by: size) {
      reader.append(ByteBuffer(bytes: bytes[start..<min(start + size, bytes.count)]))
      while let frame = reader.next() { frames.append(frame) }
    }
    return (reader.damaged, frames)
  }

  private func frame(_ head: [UInt8], _ length: Int, filledWith byte: UInt8 = 0x11) -> [UInt8] {
    head + [UInt8](repeating: byte, count: length - head.count)
  }

  /// MP2 of 48 kHz, 192 kbit/s; without and with a checksum.
  private var mp2: [UInt8] { frame([0xFF, 0xFD, 0xA4, 0x00], 576) }
  private var mp2WithChecksum: [UInt8] { frame([0xFF, 0xFC, 0xA4, 0x00], 576) }

  @Test(arguments: [1, 2, 3, 5, 188, 4096])
  func `Frames come out of pieces of any size, with a checksum or without`(_ size: Int) throws {
    let (damaged, found) = frames(mp2 + mp2WithChecksum + mp2, pieces: size)
    #expect(found.map { Array($0.payload.readableBytesView) } == [mp2, mp2WithChecksum, mp2] && damaged == 0)
    #expect(found.map(\.position) == [0, 576, 1152])
    #expect(found.allSatisfy { $0.samples == 1152 && $0.rate == 48_000 })
    #expect(Set(found.map(\.record)).count == 1, "the checksum changes nothing for a decoder")
  }

  @Test(arguments: [1, 7, 4096])
  func `Another rate in the middle is another record from its first frame on`(_ size: Int) {
    let mono = frame([0xFF, 0xFB, 0x90, 0xC4], 417)
    let (damaged, found) = frames(mp2 + mp2 + mono + mono, pieces: size)
    #expect(found.map(\.rate) == [48_000, 48_000, 44_100, 44_100] && damaged == 0)
    #expect(found.map(\.record) == [found[0].record, found[0].record, found[3].record, found[3].record])
  }

  @Test(arguments: [1, 7, 4096])
  func `A damaged header is no change of the track`(_ size: Int) {
    // Another layer, sampling rate, number of channels, and free format.
    for head: [UInt8] in [
      [0xFF, 0xFB, 0xA4, 0], [0xFF, 0xFD, 0xA0, 0], [0xFF, 0xFD, 0xA4, 0xC0], [0xFF, 0xFD, 0x04, 0],
    ] {
      let (damaged, found) = frames(mp2 + mp2 + frame(head, 576) + mp2 + mp2 + mp2, pieces: size)
      #expect(found.allSatisfy { $0.record == found[0].record })
      #expect(found.count == 5 && damaged == 1, "\(head)")
    }
  }

  @Test(arguments: [1, 7, 4096])
  func `Damage costs the frames that it meets, and counts once`(_ size: Int) {
    let (damaged, found) = frames(mp2 + [1, 2, 0xFF, 3] + mp2 + mp2 + mp2, pieces: size)
    #expect(found.map { Array($0.payload.readableBytesView) } == [mp2, mp2, mp2, mp2] && damaged == 1)
  }

  @Test func `In the middle of a frame, sync words in coded bytes are no frames`() {
    // Payload full of 0xFF: each pair of bytes has the sync word of a reserved layer or version, or of another layer.
    let noisy = frame([0xFF, 0xFD, 0xA4, 0x00], 576, filledWith: 0xFF)
    let (_, found) = frames(Array(noisy.dropFirst(100)) + noisy + noisy + noisy, pieces: 50, isAligned: false)
    #expect(found.allSatisfy { Array($0.payload.readableBytesView) == noisy } && found.count == 3)
    // A header of layer III whose frame would end where one of layer II begins.
    let lure = frame([0xFF, 0xFB, 0x90, 0x64], 417)
    let (_, after) = frames([0] + lure + mp2 + mp2 + mp2, pieces: 50, isAligned: false)
    #expect(after.map { Array($0.payload.readableBytesView) } == [mp2, mp2, mp2])
  }

  @Test func `Free format is told as unusable`() {
    var reader = AudioElementReader(MPEGAudioFrameReader())
    var clock = ProgramClock.counter
    var events: [ElementEvent] = []
    let free = frame([0xFF, 0xFD, 0x04, 0x00], 576)
    for time in [UInt64(90_000), 92_160] {
      let step = PESReader.Step(begins: PESReader.Times(presentation: time), bytes: ByteBuffer(bytes: free))
      reader.receive(step, clock: &clock, to: &events)
    }
    let reasons = events.compactMap { if case .unusable(.mpegAudio, let reason) = $0 { reason } else { nil } }
    #expect(reasons == ["MPEG audio in free format; state a bit rate"])
    #expect(!events.contains { if case .unit = $0 { true } else { false } })
  }

  @Test func `Rubbish gives no frame and is not kept`() {
    var state: UInt32 = 1
    let rubbish = (0..<200_000).map { _ in
      state = state &* 1_664_525 &+ 1_013_904_223
      return UInt8(state >> 24)
    }
    var reader = MPEGAudioFrameReader()
    var count = 0
    for start in stride(from: 0, to: rubbish.count, by: 184) {
      reader.append(ByteBuffer(bytes: rubbish[start..<min(start + 184, rubbish.count)]))
      while reader.next() != nil { count += 1 }
      #expect(reader.heldBytes < 4096)
    }
    #expect(count < 20, "\(count) frames")
  }
}
