internal import FMP4
internal import NIOCore

/// Reads one elementary stream of H.264 or HEVC: bytes of PES packets go in, access units with times come out. Nothing
/// comes out before the parameter sets of a configuration.
struct VideoElementReader {
  /// An access unit as MP4 stores it, and the configuration that begins with it.
  private struct Prepared {
    var payload: ByteBuffer
    var record: ByteBuffer?
  }

  private var finder: AccessUnitFinder
  private var parameters: VideoParameterSets
  private var times = DecodeTimes<Prepared>()
  /// The configuration that has not been told yet.
  private var record: ByteBuffer?
  /// The last reason for which a configuration was refused.
  private var refusal: String?

  init(_ coding: CodecID) {
    finder = AccessUnitFinder(coding == .hevc ? .hevc : .h264)
    parameters = VideoParameterSets(coding)
  }

  /// Bytes that are kept for later.
  var heldBytes: Int { finder.heldBytes &+ times.held(\.payload.readableBytes) }
  /// Access units without any time of their own.
  var untimed: Int { times.untimed }

  /// A packet is missing before the next bytes.
  mutating func noteLoss() { finder.noteLoss() }

  mutating func drop(to out: inout [ElementEvent]) {
    if finder.drop() { out.append(.lost(.video)) }
  }

  mutating func receive(_ step: PESReader.Step, clock: inout WireClock, to out: inout [ElementEvent]) {
    if let begin = step.begins { finder.begin(begin) }
    guard let bytes = step.bytes, bytes.readableBytes > 0 else { return }
    for unit in finder.receive(bytes) { take(unit, &clock, to: &out) }
    if finder.heldBytes > MPEGTSLimits.accessUnitBytes { drop(to: &out) }
  }

  mutating func finish(clock: inout WireClock, to out: inout [ElementEvent]) {
    if let unit = finder.finish() { take(unit, &clock, to: &out) }
    for placed in times.finish() { emit(placed, to: &out) }
  }

  private mutating func take(
    _ unit: AccessUnitFinder.Unit, _ clock: inout WireClock, to out: inout [ElementEvent]
  ) {
    guard !unit.isDamaged else { return out.append(.lost(.video)) }
    let access = accessUnit(unit.bytes)
    do throws(CodecError) {
      if try parameters.receive(access.parameterSets), let codec = parameters.codec {
        record = ByteBuffer(bytes: codec.record())
      }
    } catch {
      if refusal != error.reason { out.append(.unusable(parameters.coding, error.reason)) }
      refusal = error.reason
    }
    guard let codec = parameters.codec, access.payload.readableBytes > 0 else { return }
    let decode = unit.times.decode.map { clock.ticks($0) }
    let presentation = unit.times.presentation.map { clock.ticks($0) }
    let format = codec.videoFormat
    let frame = format?.frameRate.flatMap { Self.ticks(ofFrame: $0) }
    let placed = times.receive(
      Prepared(payload: access.payload, record: record.take()), presentation: presentation, decode: decode,
      reorderDepth: format?.reorderDepth, frame: frame)
    for unit in placed { emit(unit, to: &out) }
  }

  /// Ticks of 90 kHz. Nil if the rate is that of a clock rather than of frames.
  private static func ticks(ofFrame rate: FrameRate) -> Int64? {
    guard let rate = FrameClock.recognise(rate) else { return nil }
    return MediaTime(ticks: Int64(rate.denominator), timescale: rate.numerator).rescaled(to: ProgramClock.hertz)
  }

  private func accessUnit(_ bytes: ByteBuffer) -> AccessUnit {
    guard parameters.coding == .hevc else { return H264.accessUnit(annexB: bytes) }
    let layers = (parameters.codec?.configuration as? HEVC.Configuration)?.temporalLayers ?? 1
    return HEVC.accessUnit(annexB: bytes, temporalLayers: layers)
  }

  private mutating func emit(_ placed: DecodeTimes<Prepared>.Placed, to out: inout [ElementEvent]) {
    if let record = placed.unit.record { out.append(.configuration(parameters.coding, record)) }
    out.append(
      .unit(
        ElementUnit(
          coding: parameters.coding, presentation: placed.presentation, decode: placed.decode,
          payload: placed.unit.payload)))
  }
}
