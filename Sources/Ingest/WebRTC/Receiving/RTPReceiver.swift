internal import Base
internal import FMP4
internal import NIOCore

/// One sender of RTP (SSRC): its packets go in, in any order, and its frames come out, in order.
struct RTPReceiver {
  enum Event {
    case frame(RTPFrame)
    /// A packet of audio. `lost` packets are missing in front of it.
    case audio(RTPPacket, lost: Int)
    case lostFrame
  }

  let track: Negotiation.Track
  let source: UInt32
  private var window: ReorderWindow
  private var meter: ReceptionMeter
  private var assembler: (any RTPFrameAssembler)?
  /// Another sender has taken the track over.
  private(set) var isOver = false
  private var gap = 0
  private var steps: [ReorderWindow.Step] = []
  private var frames: [RTPFrameEvent] = []

  /// Audio that is not asked for again is not waited for long, in nanoseconds.
  private static let audioPatience: Int64 = 60_000_000

  init(_ track: Negotiation.Track, source: UInt32) {
    (self.track, self.source) = (track, source)
    window = ReorderWindow(patience: track.asksAgain ? WebRTCLimits.reorderWait : Self.audioPatience)
    meter = ReceptionMeter(hertz: track.format.clock)
    switch track.coding {
    case .h264: assembler = H264Assembler()
    case .hevc: assembler = H265Assembler()
    case .av1: assembler = AV1Assembler()
    case .vp9: assembler = VP9Assembler()
    case .vp8: assembler = VP8Assembler()
    default: assembler = nil
    }
  }

  /// Nothing more of this sender goes on.
  mutating func end() {
    isOver = true
    window.forget()
    assembler = nil
  }

  /// Bytes of packets that wait, and of the unfinished frame.
  var heldBytes: Int { window.heldBytes &+ (assembler?.heldBytes ?? 0) }

  var received: UInt64 { window.received }
  var missed: UInt64 { window.late }
  var repaired: UInt64 { window.repaired }
  var dropped: UInt64 { window.dropped }
  var jumps: UInt64 { window.jumps }

  /// Whether this is the first packet, and what a decoder begins with came in front of it.
  func lacksBeginning(_ packet: RTPPacket) -> Bool {
    window.highest == nil && assembler?.lacksBeginning(packet.payload) == true
  }

  mutating func receive(_ packet: RTPPacket, now: MonotonicTime, to out: inout [Event]) {
    if track.asksAgain, lacksBeginning(packet) { window.expect(before: packet.sequence) }
    steps.removeAll(keepingCapacity: true)
    window.receive(packet, now: now, to: &steps)
    if let highest = window.highest { meter.saw(packet, number: highest, now: now) }
    passOn(to: &out)
  }

  /// Takes a packet that came again in another form (RFC 4588). False if it is not missing: senders repeat packets as padding,
  /// too.
  mutating func receive(repeated packet: RTPPacket, now: MonotonicTime, to out: inout [Event]) -> Bool {
    window.answered(packet.sequence, now: now)
    guard window.misses(packet.sequence) else { return false }
    steps.removeAll(keepingCapacity: true)
    window.receive(packet, now: now, to: &steps)
    passOn(to: &out)
    return true
  }

  /// Time passes: what was waited for too long is given up. Returns numbers to ask for again.
  mutating func tick(now: MonotonicTime, to out: inout [Event]) -> [UInt16] {
    steps.removeAll(keepingCapacity: true)
    window.expire(now: now, to: &steps)
    passOn(to: &out)
    return track.asksAgain ? window.missing(now: now) : []
  }

  /// Nothing was read for so long before `now`, in nanoseconds.
  mutating func pardon(_ time: Int64, now: MonotonicTime) { window.pardon(time, now: now) }

  mutating func receive(_ report: SenderReport, now: MonotonicTime) { meter.saw(report, now: now) }

  mutating func reception(now: MonotonicTime) -> RTCPWriter.Reception? {
    window.highest.map { meter.reception(of: source, highest: $0, now: now) }
  }

  private mutating func passOn(to out: inout [Event]) {
    for step in steps {
      switch step {
      case .gap(let count): gap &+= count
      case .packet(let packet):
        // Packets that only pad have no media.
        guard packet.payload.readableBytes > 0 else { continue }
        guard assembler != nil else {
          out.append(.audio(packet, lost: gap))
          gap = 0
          continue
        }
        frames.removeAll(keepingCapacity: true)
        assembler?.receive(packet, afterGap: gap > 0, to: &frames)
        gap = 0
        for frame in frames {
          switch frame {
          case .frame(let frame): out.append(.frame(frame))
          case .lost: out.append(.lostFrame)
          }
        }
      }
    }
  }
}
