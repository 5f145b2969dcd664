@testable import Base
import FMP4
import NIOCore
@testable import Publishing
import Support
import Testing

@Suite("A track of audio on its way in")
struct AudioTrackTests {
  private func track(_ record: [UInt8] = PublishedRecord.aac48) throws -> AudioTrack {
    var track = AudioTrack(.audio)
    _ = try track.configure(.aac, ByteBuffer(bytes: record))
    _ = track.announce()
    return track
  }

  /// A frame of 1024 ticks that came at so many milliseconds.
  private func unit(_ milliseconds: Int64, isMoved: Bool = false) -> AudioTrack.Unit {
    AudioTrack.Unit(
      track: .audio, time: milliseconds * 1_000_000, duration: 1024, payload: ByteBuffer(bytes: [1]), isMoved: isMoved)
  }

  @Test func `A configuration counts as new when it differs`() throws {
    var track = AudioTrack(.audio)
    #expect(track.codec == nil && track.description == nil && track.timescale == nil && track.isUnannounced)
    #expect(try track.configure(.aac, ByteBuffer(bytes: PublishedRecord.aac48)) == true)
    #expect(track.announce()?.timescale == 48_000 && !track.isUnannounced)
    #expect(try track.configure(.aac, ByteBuffer(bytes: PublishedRecord.aac48)) == false)
    #expect(!track.isUnannounced)
    #expect(try track.configure(.aac, ByteBuffer(bytes: PublishedRecord.aac44)) == true)
    #expect(track.isUnannounced && track.timescale == 44_100)
    #expect(track.announce()?.timescale == 44_100)
    #expect(try track.configure(.opus, ByteBuffer(bytes: PublishedRecord.opusHead)) == true)
    #expect(track.announce()?.codec.id == .opus)
  }

  @Test func `A configuration that cannot be read leaves the one before, until the next one`() throws {
    var track = try track()
    #expect(throws: CodecError.self) { try track.configure(.aac, ByteBuffer(bytes: [0xFF])) }
    #expect(!track.isUsable && track.timescale == 48_000)
    #expect(try track.configure(.aac, ByteBuffer(bytes: PublishedRecord.aac48)) == false)
    #expect(track.isUsable)
  }

  @Test func `A frame has a length under its own configuration alone`() throws {
    let frame = ByteBuffer(bytes: [0xAF, 1, 0x21, 0x10, 0x04, 0x60, 0x8C, 0x1C] as [UInt8])
    #expect(try track().duration(.aac, frame) == 1024)
    #expect(try track().duration(.opus, frame) == nil)
    var opus = AudioTrack(.audio)
    _ = try opus.configure(.opus, ByteBuffer(bytes: PublishedRecord.opusHead))
    #expect(opus.duration(.opus, ByteBuffer()) == nil, "a packet without its first byte")
    #expect(AudioTrack(.audio).duration(.aac, frame) == nil)
  }

  @Test func `Frames lie one behind the other whatever the wire rounds`() throws {
    var track = try track()
    let times = try ([0, 21, 43, 64, 85, 107] as [Int64]).map { milliseconds in
      let (sample, correction) = track.sample(unit(1000 + milliseconds), origin: 1_000_000_000)
      #expect(correction == nil)
      return try #require(sample).decodeTime
    }
    #expect(times == (0..<6).map { $0 * 1024 })
  }

  @Test func `A gap is made at once where the wire jumps ahead, and told`() throws {
    var track = try track()
    _ = track.sample(unit(0), origin: 0)
    let (sample, correction) = track.sample(unit(1000), origin: 0)
    #expect(sample?.decodeTime == 48_000 && sample?.duration == 1024 && sample?.isSync == true)
    #expect(correction == AudioGrid.Correction(milliseconds: 979, count: 1, fillsHole: true))
  }

  @Test func `Frames that the wire gives a second time are left out`() throws {
    var track = try track()
    for frame in 0..<47 as Range<Int64> { _ = track.sample(unit(frame * 64 / 3), origin: 0) }
    let (sample, correction) = track.sample(unit(0), origin: 0)
    #expect(sample == nil && correction?.count == 1 && (correction?.milliseconds ?? 0) < -900)
    let (repeated, next) = (track.sample(unit(960), origin: 0).sample, track.sample(unit(1003), origin: 0).sample)
    #expect(repeated == nil && next?.decodeTime == 47 * 1024)
  }

  @Test func `A clock that was laid anew makes a gap that is no correction`() throws {
    var track = try track()
    _ = track.sample(unit(0), origin: 0)
    let (sample, correction) = track.sample(unit(100, isMoved: true), origin: 0)
    #expect(sample?.decodeTime == 4800 && correction == nil)
  }
}
