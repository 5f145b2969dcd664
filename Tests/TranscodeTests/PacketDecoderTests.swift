import CLibAV
import FMP4
import LibAV
@testable import Local
import NIOCore
import Support
import Testing
@testable import Transcode

@Suite("A decoder that is fed access units")
struct PacketDecoderTests {
  /// Frames of the test pattern as a worker is given them.
  private func media(_ count: Int64) throws -> (track: TrackDescription, units: [TranscodeRequest.SourceFrame]) {
    let settings = TestSourceSettings(width: 320, height: 180, keyFrameInterval: 5, videoBitRate: 300_000)
    let media = try TestMedia(settings: settings, wallStart: 0)
    var events: [MediaEvent] = []
    for frame in 0..<count { try media.advance(to: frame) { events.append($0) } }
    try media.finish { events.append($0) }
    var track: TrackDescription?
    var units: [TranscodeRequest.SourceFrame] = []
    for event in events {
      switch event {
      case .tracks(let tracks): track = tracks.first { $0.kind == .video }
      case .sample(let sample) where sample.track == .video:
        units.append(
          TranscodeRequest.SourceFrame(
            presentationTime: sample.presentationTime, decodeTime: sample.decodeTime, isSync: sample.isSync,
            lateness: 0, payload: sample.payload))
      default: break
      }
    }
    return (try #require(track), units)
  }

  private func decoder(_ track: TrackDescription) throws -> PacketDecoder {
    try PacketDecoder(
      track.codec.id, record: track.codec.record(), maximumPixels: 320 * 192, timescale: track.timescale)
  }

  /// Presentation times of all frames that are ready.
  private func times(_ decoder: PacketDecoder) throws -> [Int64] {
    let frame = try VideoFrame()
    var times: [Int64] = []
    while decoder.receive(frame.frame) >= 0 { times.append(frame.frame.pointee.pts) }
    return times
  }

  @Test func `Every frame comes out at its time, and after the end another beginning`() throws {
    let (track, units) = try media(10)
    let decoder = try decoder(track)
    for _ in 0..<2 {
      var times: [Int64] = []
      for unit in units {
        #expect(try decoder.send(unit) == 0)
        times += try self.times(decoder)
      }
      #expect(decoder.sendEnd() == 0)
      times += try self.times(decoder)
      #expect(times == units.map(\.presentationTime))
      decoder.flush()
    }
  }

  @Test func `Bytes that are no frame are told by a code, and the next key frame is decoded`() throws {
    let (track, units) = try media(6)
    let decoder = try decoder(track)
    var broken = units[0]
    broken.payload = ByteBuffer(bytes: [0, 0, 0, 200, 0x65, 1, 2, 3])
    #expect(try decoder.send(broken) < 0)
    #expect(try times(decoder) == [])
    #expect(try decoder.send(units[5]) == 0)
    _ = decoder.sendEnd()
    #expect(try times(decoder) == [units[5].presentationTime])
  }

  @Test func `After the end nothing more is taken before a flush`() throws {
    let (track, units) = try media(1)
    let decoder = try decoder(track)
    _ = decoder.sendEnd()
    #expect(try decoder.send(units[0]) < 0)
    decoder.flush()
    #expect(try decoder.send(units[0]) == 0)
  }

  @Test func `A record that no decoder takes is refused`() {
    #expect(throws: LibAVError.self) {
      _ = try PacketDecoder(.aac, record: [0xFF, 0xFF, 0xFF], timescale: 48_000)
    }
  }
}
