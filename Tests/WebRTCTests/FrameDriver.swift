import NIOCore
import Testing
@testable import WebRTC

/// Feeds packets to an assembler in order, and keeps what comes out.
struct FrameDriver<Assembler: RTPFrameAssembler> {
  var assembler: Assembler
  var events: [RTPFrameEvent] = []
  private(set) var sequence: UInt16 = 0

  init(assembler: Assembler) { self.assembler = assembler }

  mutating func feed(_ payload: [UInt8], at timestamp: UInt32 = 0, marker: Bool = false, afterGap: Bool = false) throws
  {
    let packet = try #require(RTPPackets.packet(sequence, at: timestamp, marker: marker, payload))
    sequence &+= 1
    assembler.receive(packet, afterGap: afterGap, to: &events)
  }

  /// Each as a frame of its own.
  mutating func feed(frames: [[UInt8]]) throws {
    for payload in frames { try feed(payload, at: UInt32(sequence) * 3000, marker: true) }
  }

  /// Payloads; nil for a lost frame.
  var frames: [[UInt8]?] {
    events.map { event -> [UInt8]? in
      if case .frame(let frame) = event { Array(frame.payload.readableBytesView) } else { nil }
    }
  }

  /// Whether decoding can begin with each; nil for a lost frame.
  var keys: [Bool?] {
    events.map { event -> Bool? in if case .frame(let frame) = event { frame.isKey } else { nil } }
  }
}
