internal import Base
internal import FMP4
internal import NIOCore
internal import Publishing

/// Reads one elementary stream of H.264 or HEVC: bytes of PES packets go in, access units with times come out. Nothing
/// comes out before the parameter sets of a configuration.
struct VideoElementReader {
  /// An access unit as MP4 stores it, and the configuration that begins with it.
  private struct Prepared {
    var payload: ByteBuffer
    var record: ByteBuffer?
  }

  /// The same with its times in ticks.
  private struct Timed {
    var unit: Prepared
    var presentation: Int64?
    var decode: Int64?
  }

  private var finder: AccessUnitFinder
  private var parameters: VideoParameterSets
  private var times = DecodeTimes<Prepared>()
  /// The configuration that has not been told yet.
  private var record: ByteBuffer?
  /// Of H.264 that may be coded as fields: their syntax, and a first field that waits for the second one. Both are one
  /// sample, with the times of the first.
  private var fields: H264.FieldSyntax?
  private var firstField: (field: H264.Field, unit: Timed)?
  /// The last reason for which a configuration was refused.
  private var refusal: String?

  init(_ coding: CodecID) {
    finder = AccessUnitFinder(coding)
    parameters = VideoParameterSets(coding)
  }

  /// Bytes of whole access units that wait.
  private var waitingBytes = 0
  /// Bytes that are kept for later.
  var heldBytes: Int { finder.heldBytes &+ waitingBytes }
  /// Access units without any time of their own.
  var untimed: Int { times.untimed }

  /// A packet is missing before the next bytes.
  mutating func noteLoss() { finder.noteLoss() }

  mutating func drop(to out: inout [ElementEvent]) {
    let (unfinished, field) = (finder.drop(), firstField.take())
    if unfinished || field != nil { out.append(.lost(.video)) }
    for placed in times.finish() { emit(placed, to: &out) }
    countWaiting()
  }

  private mutating func countWaiting() {
    waitingBytes = times.held { $0.payload.readableBytes } &+ (firstField?.unit.unit.payload.readableBytes ?? 0)
  }

  /// Returns `heldBytes`.
  @discardableResult
  mutating func receive(_ step: PESReader.Step, clock: inout WireClock, to out: inout [ElementEvent]) -> Int {
    if let begin = step.begins { finder.begin(begin) }
    guard let bytes = step.bytes, bytes.readableBytes > 0 else { return heldBytes }
    let units = finder.receive(bytes)
    if !units.isEmpty {
      for unit in units { take(unit, &clock, to: &out) }
      countWaiting()
    }
    if finder.heldBytes > MPEGTSLimits.accessUnitBytes { drop(to: &out) }
    return heldBytes
  }

  mutating func finish(clock: inout WireClock, to out: inout [ElementEvent]) {
    if let unit = finder.finish() { take(unit, &clock, to: &out) }
    if let first = firstField.take() { place(first.unit, to: &out) }
    for placed in times.finish() { emit(placed, to: &out) }
    countWaiting()
  }

  private mutating func take(
    _ unit: AccessUnitFinder.Unit, _ clock: inout WireClock, to out: inout [ElementEvent]
  ) {
    guard !unit.isDamaged else { return out.append(.lost(.video)) }
    let access = accessUnit(unit.bytes)
    do throws(CodecError) {
      if try parameters.receive(access.parameterSets), let codec = parameters.codec {
        record = ByteBuffer(bytes: codec.record())
        fields = (codec.configuration as? H264.Configuration)?.sps.first.flatMap { .init(sequenceParameters: $0) }
      }
    } catch {
      if refusal != error.reason { out.append(.unusable(parameters.coding, error.reason)) }
      refusal = error.reason
    }
    guard access.payload.readableBytes > 0 else { return }
    guard parameters.codec != nil else { return out.append(refusal == nil ? .early : .lost(.video)) }
    let timed = Timed(
      unit: Prepared(payload: access.payload, record: record.take()),
      presentation: unit.times.presentation.map { clock.ticks($0) }, decode: unit.times.decode.map { clock.ticks($0) })
    let field = fields?.field(of: access.payload)
    if var first = firstField.take() {
      if field?.completes(first.field) == true {
        first.unit.unit.payload.writeImmutableBuffer(access.payload)
        return place(first.unit, to: &out)
      }
      place(first.unit, to: &out)
    }
    if let field { firstField = (field, timed) } else { place(timed, to: &out) }
  }

  private mutating func place(_ timed: Timed, to out: inout [ElementEvent]) {
    let format = parameters.codec?.videoFormat
    let placed = times.receive(
      timed.unit, presentation: timed.presentation, decode: timed.decode, reorderDepth: format?.reorderDepth,
      frame: format?.frameRate.flatMap { Self.ticks(ofFrame: $0) })
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
