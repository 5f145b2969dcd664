internal import Base
internal import CLibAV
internal import FMP4
internal import Glibc
internal import LibAV

/// Aligns a microphone's samples with the monotonic clock. Converts them to 48 kHz and two channels, and stretches them
/// slightly if the microphone's clock is fast or slow. Missing samples become silence. Used on one thread.
///
/// Output sample `n` was captured `n / 48000` seconds after `start`.
final class AudioAligner {
  static let rate = 48000
  /// At the start of a microphone and after an overrun, audio is certainly missing or doubled. A deviation above this
  /// many nanoseconds is bridged or cut exactly.
  private static let longestLoose: Int64 = 1_000_000
  /// Elsewhere, missing audio longer than this is bridged. A shorter deviation is stretched.
  private static let longestStretched: Int64 = 60_000_000
  /// Audio that has been ahead of its samples for so many nanoseconds, by more than `longestStretched`, is cut. A gap was
  /// bridged, but its samples were only late: the driver's time was wrong for a moment.
  private static let longestAhead: Int64 = 500_000_000
  /// Samples over which one correction is spread. Many, so that steps of 1/480000 are possible.
  private static let compensationDistance = 10 * rate

  /// Capture time of the first sample. Nil before the first sample.
  private(set) var start: MonotonicTime?
  /// Number of output samples.
  private(set) var produced: Int64 = 0
  /// Samples of silence that bridged gaps.
  private(set) var bridged: Int64 = 0
  private var drift = DriftEstimator()
  private var resampler: OpaquePointer?
  private var lastUpdate: MonotonicTime?
  private var inputRate = rate
  /// Bytes of one channel's sample.
  private var bytesPerSample = 0
  private var channels = 2
  /// The next samples are the first of a microphone, or the first after an overrun.
  private var isJoint = true
  /// Time of the first samples since which the output is too far ahead of them.
  private var aheadSince: MonotonicTime?
  /// The resampler holds audio of this microphone.
  private var hasConverted = false
  /// The first two of many channels.
  private var pairs: [UInt8] = []
  private var left: [Float] = []
  private var right: [Float] = []

  init() {}

  deinit { swr_free(&resampler) }

  /// Begins with a microphone of this audio format. Of more than two channels the first two are used: the others of an
  /// interface with many inputs are neither left nor right.
  func connect(rate inputRate: Int, channels: Int, format: AVSampleFormat) throws(LibAVError) {
    swr_free(&resampler)
    self.inputRate = inputRate
    self.channels = channels
    bytesPerSample = Int(av_get_bytes_per_sample(format))
    (isJoint, hasConverted) = (true, false)
    var input = AVChannelLayout()
    var output = AVChannelLayout()
    av_channel_layout_default(&input, Int32(clamping: min(channels, 2)))
    av_channel_layout_default(&output, 2)
    try LibAVError.check(
      swr_alloc_set_opts2(
        &resampler, &output, AV_SAMPLE_FMT_FLTP, Int32(Self.rate), &input, format, Int32(clamping: inputRate), 0, nil),
      "convert audio")
    // One channel goes to both sides at full level, not lowered as a centre channel would be.
    let both = [1.0, 1.0]
    if channels == 1 { try LibAVError.check(swr_set_matrix(resampler, both, 1), "convert audio") }
    // Always resampling, so that stretching can begin without a click.
    av_opt_set_int(UnsafeMutableRawPointer(resampler), "flags", Int64(SWR_FLAG_RESAMPLE), 0)
    try LibAVError.check(swr_init(resampler), "convert audio")
    drift.restart()
  }

  /// Records an overrun: samples are missing before the next ones.
  func interrupt() { isJoint = true }

  /// Takes samples. The first one was captured at `time`.
  func add(_ bytes: UnsafeRawBufferPointer, count: Int, time: MonotonicTime, _ receive: ([Float], [Float]) -> Void)
    throws(LibAVError)
  {
    guard count > 0, let resampler else { return }
    if start == nil { start = time }
    // A new resampler outputs its first sample without delay.
    let inside = hasConverted ? swr_get_delay(resampler, 1_000_000_000) : 0
    let behind = time &- inside &- end
    aheadSince = behind < -Self.longestStretched ? aheadSince ?? time : nil
    if let since = aheadSince, time &- since >= Self.longestAhead { isJoint = true }
    if isJoint, behind < -Self.longestLoose {
      // Silence was output for its beginning already.
      let doubled = Int(MediaTime(nanoseconds: -behind).rescaled(to: UInt32(clamping: inputRate)))
      let frame = bytesPerSample * channels
      guard doubled < count, frame > 0, bytes.count >= count * frame else { return }
      isJoint = false
      drift.restart()
      let rest = UnsafeRawBufferPointer(rebasing: bytes[(doubled * frame)..<(count * frame)])
      return try convert(rest, count - doubled, resampler, receive)
    }
    if behind > (isJoint ? Self.longestLoose : Self.longestStretched) {
      silence(until: time &- inside, receive)
      drift.restart()
    } else if behind < -Self.longestStretched * 4 {
      // Captured before samples that were output: a clock has jumped. The overlap is dropped.
      return
    } else {
      try correct(Double(behind) / 1e9, time, resampler)
    }
    isJoint = false
    try convert(bytes, count, resampler, receive)
  }

  /// Fills up with silence until `time`.
  func silence(until time: MonotonicTime, _ receive: ([Float], [Float]) -> Void) {
    if start == nil { start = time }
    var missing = MediaTime(nanoseconds: time &- end).rescaled(to: UInt32(Self.rate))
    while missing > 0 {
      let count = Int(min(missing, Int64(Self.rate / 10)))
      let zeros = [Float](repeating: 0, count: count)
      produced += Int64(count)
      bridged += Int64(count)
      missing -= Int64(count)
      receive(zeros, zeros)
    }
  }

  /// Capture time of the next output sample.
  var end: MonotonicTime {
    (start ?? .zero) &+ MediaTime(ticks: produced, timescale: UInt32(Self.rate)).nanoseconds
  }

  /// Delay of the audio against the clock in nanoseconds, smoothed. For the status only.
  var skew: Int64 { Int64(drift.error * 1e9) }

  private func correct(_ error: Double, _ time: MonotonicTime, _ resampler: OpaquePointer) throws(LibAVError) {
    let elapsed = lastUpdate.map { Double(time &- $0) / 1e9 } ?? 0
    lastUpdate = time
    let correction = drift.correction(error: error, elapsed: elapsed)
    let samples = Int32((correction * Double(Self.compensationDistance)).rounded())
    try LibAVError.check(
      swr_set_compensation(resampler, samples, Int32(Self.compensationDistance)), "stretch audio")
  }

  private func convert(
    _ bytes: UnsafeRawBufferPointer, _ count: Int, _ resampler: OpaquePointer,
    _ receive: ([Float], [Float]) -> Void
  ) throws(LibAVError) {
    hasConverted = true
    let room = Int(swr_get_out_samples(resampler, Int32(clamping: count))) + 32
    if left.count < room {
      left = [Float](repeating: 0, count: room)
      right = left
    }
    let produced = channels > 2 ? resamplePairs(bytes, count, resampler) : resample(bytes, count, resampler)
    try LibAVError.check(produced, "convert audio")
    guard produced > 0 else { return }
    self.produced += Int64(produced)
    receive(Array(left[..<Int(produced)]), Array(right[..<Int(produced)]))
  }

  /// Number of output samples, or libswresample's error code.
  private func resample(_ bytes: UnsafeRawBufferPointer, _ count: Int, _ resampler: OpaquePointer) -> Int32 {
    let room = Int32(clamping: left.count)
    return left.withUnsafeMutableBytes { left in
      right.withUnsafeMutableBytes { right in
        var planes = [
          left.baseAddress?.assumingMemoryBound(to: UInt8.self), right.baseAddress?.assumingMemoryBound(to: UInt8.self),
        ]
        var input = [bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)]
        return swr_convert(resampler, &planes, room, &input, Int32(clamping: count))
      }
    }
  }

  /// The same with the first two channels of many.
  private func resamplePairs(_ bytes: UnsafeRawBufferPointer, _ count: Int, _ resampler: OpaquePointer) -> Int32 {
    let (frame, pair) = (bytesPerSample * channels, bytesPerSample * 2)
    let whole = frame > 0 ? min(count, bytes.count / frame) : 0
    pairs.removeAll(keepingCapacity: true)
    for number in 0..<whole { pairs.append(contentsOf: bytes[(number * frame)..<(number * frame + pair)]) }
    return pairs.withUnsafeBytes { resample($0, whole, resampler) }
  }
}
