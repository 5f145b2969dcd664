import Base
import FMP4
import NIOCore
import Publishing
import Support
import Testing
@testable import WebRTC

/// The first seconds of each kind of sender, as they came.
@Suite struct SenderCaptureTests {
  /// A capture, its codec, and how many of its packets of video end a frame (their marks).
  private static let senders: [(name: String, coding: CodecID, frames: Int)] = [
    ("aiortc-1.16-h264", .h264, 2), ("chromium-156-av1", .av1, 8), ("chromium-156-h264", .h264, 11),
    ("chromium-156-vp8", .vp8, 10), ("chromium-156-vp9", .vp9, 10), ("ffmpeg-9.0-h264", .h264, 9),
    ("firefox-153-av1", .av1, 12), ("firefox-153-vp8", .vp8, 13), ("firefox-153-vp9", .vp9, 14),
  ]

  @Test(arguments: senders.indices)
  func `Each whole frame of a sender goes on, and its audio`(_ index: Int) throws {
    let (name, coding, frames) = Self.senders[index]
    let capture = SenderCapture(try Fixtures.bytes("webrtc/\(name).webrtc"))
    let negotiation = try Negotiation(try SessionOffer(capture.offer))
    #expect(negotiation.tracks.first { $0.kind == .video }?.coding == coding, "\(name)")
    var (now, out) = (MonotonicTime.zero, [PublicationAction]())
    let clock = ClockReading(wall: WallTime(milliseconds: 1_000_000), monotonic: now)
    var publication = WebRTCPublication(negotiation, reading: clock, now: now)
    for record in capture.records {
      now = now &+ 5_000_000
      switch record.kind {
      case .rtp: try publication.receive(rtp: ByteBuffer(bytes: record.bytes), now: now, to: &out)
      case .rtcp: publication.receive(rtcp: ByteBuffer(bytes: record.bytes), now: now, to: &out)
      case .stun, .offer: break
      }
    }
    // What waits for audio or for tracks goes on by itself.
    for _ in 0..<300 {
      now = now &+ 10_000_000
      _ = try publication.tick(now: now, to: &out)
    }
    let samples = out.compactMap { if case .event(.sample(let sample)) = $0 { sample } else { nil } }
    #expect(samples.count { $0.track == .video } == frames, "\(name)")
    #expect(samples.first { $0.track == .video }?.isSync == true, "\(name)")
    #expect(samples.contains { $0.track == .audio }, "\(name)")
    #expect(!out.contains { if case .lost(.video) = $0 { true } else { false } }, "\(name)")
  }

  @Test(arguments: senders.indices)
  func `Its requests of ICE are read, and its reports`(_ index: Int) throws {
    let capture = SenderCapture(try Fixtures.bytes("webrtc/\(Self.senders[index].name).webrtc"))
    for bytes in capture.all(.stun) {
      let message = try #require(STUNMessage(ByteBuffer(bytes: bytes)))
      #expect(message.kind == .bindingRequest && message.username.contains(":"))
    }
    let events = capture.all(.rtcp).flatMap { RTCPReader.read(ByteBuffer(bytes: $0)) }
    #expect(events.contains { if case .report = $0 { true } else { false } } || capture.all(.rtcp).isEmpty)
  }
}
