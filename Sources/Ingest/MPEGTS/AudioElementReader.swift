internal import Publishing
internal import Base
internal import FMP4
internal import NIOCore

/// Reads one elementary stream of audio: bytes of PES packets go in, audio frames with times come out. A frame that
/// begins in a packet before any other has the packet's time. The others are counted on from it by samples, without
/// accumulated rounding.
struct AudioElementReader {
  private var reader: any AudioFrameReader
  private var marks = PESTimeMarks()
  /// The newest stated time, and the samples since then.
  private var anchor: (ticks: Int64, samples: Int64, rate: UInt32)?
  private var record: [UInt8] = []
  private var isUsable = false
  private var damaged = 0
  /// Audio frames without any time.
  private(set) var untimed = 0

  init(_ reader: any AudioFrameReader) { self.reader = reader }

  /// Bytes that are kept for later.
  var heldBytes: Int { reader.heldBytes }

  /// A packet is missing before the next bytes.
  mutating func noteLoss(to out: inout [ElementEvent]) {
    // Further packets that are missing before the next stated time count with the first.
    if reader.heldBytes > 0 || anchor != nil { out.append(.lost(.audio)) }
    reader.drop()
    marks.removeAll()
    anchor = nil
  }

  /// Returns `heldBytes`.
  @discardableResult
  mutating func receive(_ step: PESReader.Step, clock: inout WireClock, to out: inout [ElementEvent]) -> Int {
    if let begin = step.begins {
      reader.begin()
      marks.add(begin, at: reader.position &+ reader.heldBytes)
    }
    guard let bytes = step.bytes, bytes.readableBytes > 0 else { return reader.heldBytes }
    reader.append(bytes)
    while let frame = reader.next() { take(frame, &clock, to: &out) }
    if reader.damaged != damaged {
      damaged = reader.damaged
      out.append(.lost(.audio))
    }
    if reader.heldBytes > MPEGTSLimits.audioBytes { noteLoss(to: &out) }
    return reader.heldBytes
  }

  private mutating func take(_ frame: AudioFrame, _ clock: inout WireClock, to out: inout [ElementEvent]) {
    let stated = marks.take(at: frame.position).presentation
    if let time = stated {
      anchor = (clock.ticks(time), 0, frame.rate)
    } else if let last = anchor, last.rate != frame.rate {
      anchor = (Self.time(last), 0, frame.rate)
    }
    guard let now = anchor else {
      untimed &+= 1
      return
    }
    anchor?.samples = now.samples &+ frame.samples
    if frame.record != record {
      record = frame.record
      configure(to: &out)
    }
    guard isUsable else { return }
    let time = Self.time(now)
    out.append(
      .unit(
        ElementUnit(
          coding: reader.coding, presentation: time, decode: time, isCountedOn: stated == nil, payload: frame.payload)))
  }

  private mutating func configure(to out: inout [ElementEvent]) {
    let bytes = ByteBuffer(bytes: record)
    do throws(CodecError) {
      _ = try Codec(reader.coding, record: bytes)
      isUsable = true
      out.append(.configuration(reader.coding, bytes))
    } catch {
      isUsable = false
      out.append(.unusable(reader.coding, error.reason))
    }
  }

  private static func time(_ anchor: (ticks: Int64, samples: Int64, rate: UInt32)) -> Int64 {
    anchor.ticks &+ MediaTime(ticks: anchor.samples, timescale: anchor.rate).rescaled(to: ProgramClock.hertz)
  }
}
