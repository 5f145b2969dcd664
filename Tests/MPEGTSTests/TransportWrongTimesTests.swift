import Base
import FMP4
import IngestSupport
import MPEGTS
import NIOCore
import Publishing
import Support
import Testing

/// A wrong time in a transport stream costs nothing, whether it is the time of one frame or of a packet of several.
@Suite("Wrong times in a transport stream")
struct TransportWrongTimesTests {
  private static let sets: [UInt8] = {
    let record = try? H264.Configuration(record: ByteBuffer(bytes: PublishedRecord.avc25))
    return ((record?.sps ?? []) + (record?.pps ?? [])).flatMap { [0, 0, 0, 1] + $0 }
  }()

  /// Four seconds of 25 frames, and of audio with four frames in a packet. `video` and `audio`: what is added to the time of the
  /// frame and the packet in the middle, in ticks of 90 kHz.
  private func taken(
    video: Int64 = 0, audio: Int64 = 0, hasDecodeTimes: Bool
  ) throws -> (video: [Int64], audio: [Int64], broken: Int) {
    var script = TransportScript()
    script.add(table: 0, TransportScript.association([(1, pid: 32)]))
    script.add(table: 32, TransportScript.map(1, [(0x1B, 256, []), (0x0F, 257, [])]))
    var packets: Int64 = 0
    for frame in 0..<100 as Range<Int64> {
      let time = UInt64(900_000 + frame * 3600 + (frame == 55 ? video : 0))
      let unit = [0, 0, 0, 1, 9, 0xF0] + Self.sets + [0, 0, 1, 0x65, 0x88, 0x84, UInt8(frame)]
      script.add(
        256, TransportScript.pes(0xE0, time, decode: hasDecodeTimes ? time : nil, length: 0, unit))
      while packets * 7680 < (frame + 1) * 3600 {
        let bytes = (0..<4).flatMap { _ in TransportScript.adts([1, 2, 3]) }
        let time = UInt64(900_000 + packets * 7680 + (packets == 25 ? audio : 0))
        script.add(257, TransportScript.pes(0xC0, time, bytes))
        packets += 1
      }
    }
    var publication = TransportPublication(reading: ClockReading(wall: 0, monotonic: 0))
    var actions: [PublicationAction] = []
    try publication.receive(ByteBuffer(bytes: script.bytes), now: 0, to: &actions)
    try publication.finish(now: 0, to: &actions)
    var found: (video: [Int64], audio: [Int64], broken: Int) = ([], [], 0)
    for action in actions {
      switch action {
      case .event(.sample(let sample)) where sample.track == .video: found.video.append(sample.presentationTime)
      case .event(.sample(let sample)): found.audio.append(sample.decodeTime)
      case .event(.discontinuity), .lost: found.broken += 1
      default: break
      }
    }
    return found
  }

  @Test(arguments: [450_000, -450_000, 270_000, 324_000_000, -900_000] as [Int64], [true, false])
  func `One of a frame and one of a packet`(_ error: Int64, _ hasDecodeTimes: Bool) throws {
    let honest = try taken(hasDecodeTimes: hasDecodeTimes)
    #expect(honest.video.count == 100 && honest.audio.count > 180 && honest.broken == 0)
    let odd = try taken(video: error, hasDecodeTimes: hasDecodeTimes)
    #expect(odd.video == honest.video && odd.audio == honest.audio && odd.broken == 0)
    let second = try taken(audio: error, hasDecodeTimes: hasDecodeTimes)
    #expect(second.video == honest.video && second.audio == honest.audio && second.broken == 0)
  }
}
