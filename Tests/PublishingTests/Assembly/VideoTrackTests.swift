import FMP4
import NIOCore
@testable import Publishing
import Support
import Testing

@Suite("A track of video on its way in")
struct VideoTrackTests {
  private static let key: [UInt8] = [0x65, 0x88, 0x84, 0x00]
  private static let other: [UInt8] = [0x41, 0x9A, 0x22]

  private func track(_ record: [UInt8] = PublishedRecord.avc25) throws -> VideoTrack {
    var track = VideoTrack(.video)
    _ = try track.configure(.h264, ByteBuffer(bytes: record))
    return track
  }

  private func payload(_ units: [[UInt8]]) -> ByteBuffer {
    ByteBuffer(bytes: units.flatMap { BoxBytes.u32(UInt32($0.count)) + $0 })
  }

  private func sets(_ record: [UInt8]) throws -> [[UInt8]] {
    let configuration = try H264.Configuration(record: ByteBuffer(bytes: record))
    return configuration.sps + configuration.pps
  }

  // MARK: Configurations

  @Test func `A configuration counts as new when it differs`() throws {
    var track = VideoTrack(.video)
    #expect(track.description == nil && track.announce(stated: nil) == nil)
    #expect(try track.configure(.h264, ByteBuffer(bytes: PublishedRecord.avc25)) == true)
    #expect(try track.configure(.h264, ByteBuffer(bytes: PublishedRecord.avc25)) == false)
    #expect(try track.configure(.h264, ByteBuffer(bytes: PublishedRecord.avc2997)) == true)
    #expect(try track.configure(.av1, ByteBuffer(bytes: PublishedRecord.av1)) == true)
    #expect(track.codec?.id == .av1)
    #expect(throws: CodecError.self) { try track.configure(.h264, ByteBuffer(bytes: [1, 2])) }
    #expect(track.codec?.id == .av1, "what cannot be read changes nothing")
  }

  @Test func `The size of lengths alone is no new configuration, but holds for what follows`() throws {
    var track = try track()
    var record = PublishedRecord.avc25
    record[4] = 0xFD
    #expect(try track.configure(.h264, ByteBuffer(bytes: record)) == false)
    let unit = try track.accessUnit(.h264, ByteBuffer(bytes: [0, 4] + Self.key))
    #expect(unit?.payload == payload([Self.key]))
  }

  // MARK: Access units

  @Test func `Nothing is taken before a configuration and its key frame`() throws {
    var track = VideoTrack(.video)
    #expect(try track.accessUnit(.h264, payload([Self.key])) == nil)
    track = try self.track()
    #expect(try track.accessUnit(.h264, payload([Self.other])) == nil && track.awaitsKeyFrame)
    #expect(try track.accessUnit(.hevc, payload([Self.key])) == nil, "another codec's")
    #expect(try track.accessUnit(.h264, payload([Self.key]))?.isSync == true && !track.awaitsKeyFrame)
    #expect(try track.accessUnit(.h264, payload([Self.other]))?.isSync == false)
    #expect(try track.accessUnit(.h264, payload([])) == nil)
  }

  @Test func `Parameter sets in the stream change the configuration, and a key frame has to follow`() throws {
    var track = try track()
    _ = track.announce(stated: nil)
    _ = try track.accessUnit(.h264, payload([Self.key]))
    #expect(try track.accessUnit(.h264, payload(try sets(PublishedRecord.avc25) + [Self.key])) != nil)
    #expect(!track.isUnannounced, "the same ones change nothing")
    #expect(try track.accessUnit(.h264, payload(try sets(PublishedRecord.avc2997) + [Self.other])) == nil)
    #expect(track.isUnannounced && track.awaitsKeyFrame)
    let unit = try track.accessUnit(.h264, payload([Self.key]))
    #expect(unit?.payload == payload([Self.key]))
    #expect(track.announce(stated: nil)?.timescale == 30_000)
  }

  @Test func `An access unit that is cut short throws`() throws {
    var track = try track()
    #expect(throws: CodecError.self) { try track.accessUnit(.h264, ByteBuffer(bytes: [0, 0, 0, 9, 0x65])) }
  }

  @Test func `Colours that are stated are announced with the next key frame`() throws {
    var track = try track()
    _ = track.announce(stated: nil)
    _ = try track.accessUnit(.h264, payload([Self.key]))
    let color = VideoColor(lightLevel: ContentLightLevel(maximum: 1000, maximumAverage: 400))
    track.state(color)
    _ = try track.accessUnit(.h264, payload([Self.other]))
    #expect(!track.isUnannounced && track.description?.statedColor == nil)
    _ = try track.accessUnit(.h264, payload([Self.key]))
    #expect(track.isUnannounced && track.announce(stated: nil)?.statedColor == color)
  }

  // MARK: Rates

  @Test func `The bitstream's rate makes the timescale, and the metadata's where it has none`() throws {
    var track = try track()
    let announced = track.announce(stated: nil)
    let description = try #require(announced)
    #expect(description.timescale == 25_000 && description.frameDuration == 1000)
    #expect(track.frameLength(stated: nil) == 40_000_000)
    var other = try self.track(PublishedRecord.avc2997)
    #expect(other.announce(stated: nil)?.frameDuration == 1001)
    #expect(other.frameLength(stated: nil) == 33_000_000, "whole milliseconds")
    var silent = VideoTrack(.video)
    _ = try silent.configure(.av1, ByteBuffer(bytes: PublishedRecord.av1))
    #expect(silent.announce(stated: nil)?.timescale == 90_000 && silent.frameLength(stated: nil) == 0)
    #expect(silent.announce(stated: 29.97)?.timescale == 30_000)
  }

  @Test func `A bitstream that states the rate of fields yields to the metadata`() throws {
    var track = try track()
    // 25 fields a second are 12.5 frames.
    #expect(track.announce(stated: 12.5)?.frameDuration == 2000)
    #expect(track.announce(stated: 7.77)?.frameDuration == 1000, "no rate that anything has")
  }

  // MARK: Times

  @Test func `Times are laid on the grid of the rate`() throws {
    var track = try track()
    _ = track.announce(stated: nil)
    func sample(_ milliseconds: Int64, composition: Int64 = 80) -> Sample {
      track.sample(
        VideoTrack.Unit(
          track: .video, time: milliseconds * 1_000_000, composition: composition * 1_000_000, isSync: false,
          isDisposable: true, payload: ByteBuffer(bytes: [7]), isMoved: false), origin: 500_000_000)
    }
    let samples = [500, 540, 579, 621].map { sample($0) }
    #expect(samples.map(\.decodeTime) == [0, 1000, 2000, 3000])
    #expect(samples.map(\.compositionOffset) == [2000, 2000, 2000, 2000])
    #expect(samples.allSatisfy { $0.isDisposable && !$0.isSync && $0.track == .video })
  }

  @Test func `Reordering of 20 ms and more is told when a key frame shows it`() throws {
    var track = try track()
    let millisecond: Int64 = 1_000_000
    #expect(track.note(isSync: false, at: 0, shown: 90 * millisecond, until: 130 * millisecond) == false)
    #expect(track.reorderDelay == 0)
    track.forgetPresentation()
    #expect(track.note(isSync: true, at: 0, shown: 19 * millisecond, until: 59 * millisecond) == false)
    #expect(track.reorderDelay == 19 * millisecond)
    track.forgetPresentation()
    #expect(track.note(isSync: true, at: 100 * millisecond, shown: 180 * millisecond, until: 220 * millisecond) == true)
    // In an open group frames are shown before the key frame, from where those before it end.
    #expect(
      track.note(isSync: true, at: 200 * millisecond, shown: 320 * millisecond, until: 360 * millisecond) == false)
    #expect(track.reorderDelay == 20 * millisecond)
  }
}
