internal import Base
internal import CALSA
internal import CLibAV
internal import FMP4
internal import Glibc

/// A running microphone (ALSA): interleaved samples, and the capture time of the first one. Used on one thread.
final class Microphone {
  /// Interleaved samples of `format`. Valid only during the callback.
  struct Block {
    let bytes: UnsafeRawBufferPointer
    /// Samples per channel.
    let count: Int
    /// Capture time of the first sample.
    let time: MonotonicTime
  }

  let rate: Int
  let channels: Int
  /// libswresample's format of the blocks.
  var format: AVSampleFormat { sampleFormat.converted }
  private let sampleFormat: SampleFormat
  private let device: String
  private let handle: OpaquePointer
  private let buffer: UnsafeMutableRawBufferPointer
  /// The samples of `buffer`, widened. Empty if the device's format needs no widening.
  private let wide: UnsafeMutableRawBufferPointer
  /// Bytes at the device of one sample of all channels.
  private let bytesPerSample: Int
  /// Number of overruns of the device's buffer, and of stops by the device itself.
  private(set) var overruns = 0

  /// Samples to wait for, and buffer size of the device, in milliseconds. The large buffer prevents losses on a busy
  /// machine and adds no delay otherwise.
  private static let periodMilliseconds = 10
  private static let bufferMilliseconds = 2000
  /// Oldest plausible time from the device, in nanoseconds. Some plugins state their start time.
  private static let oldestStamp: Int64 = 100_000_000
  /// Most channels, as in studio interfaces. A higher number from a device would cost memory.
  private static let mostChannels = 128

  init(_ settings: MicrophoneSettings) throws(CaptureError) {
    weir_alsa_quiet()
    device = settings.device
    let owner = CaptureError.Device.microphone(settings.device)
    var opened: OpaquePointer?
    let code = snd_pcm_open(&opened, settings.device, SND_PCM_STREAM_CAPTURE, SND_PCM_NONBLOCK)
    guard code >= 0, let pcm = opened else {
      // For names other than the card's own, the library gives the same error for a missing card and a forbidden one.
      guard code == -ENODEV || code == -ENOENT else { throw CaptureError(owner, code: -code, "open it") }
      throw CaptureError(owner, MicrophoneCatalogue.areForbidden ? .forbidden : .missing)
    }
    do throws(CaptureError) {
      (rate, channels, sampleFormat) = try Self.negotiate(pcm, settings)
    } catch {
      snd_pcm_close(pcm)
      throw error
    }
    handle = pcm
    bytesPerSample = sampleFormat.deviceBytes * channels
    buffer = .allocate(byteCount: bytesPerSample * rate / 10, alignment: 16)
    wide = .allocate(byteCount: sampleFormat == .packed24 ? 4 * channels * (rate / 10) : 0, alignment: 16)
    let started = snd_pcm_start(pcm)
    guard started >= 0 else { throw CaptureError(owner, code: -started, "start it") }
  }

  deinit {
    snd_pcm_close(handle)
    buffer.deallocate()
    wide.deallocate()
  }

  /// The best format, and the rate and number of channels closest to the requested ones.
  private static func negotiate(
    _ pcm: OpaquePointer, _ settings: MicrophoneSettings
  ) throws(CaptureError) -> (Int, Int, SampleFormat) {
    let owner = CaptureError.Device.microphone(settings.device)
    func check(_ code: Int32, _ attempt: String) throws(CaptureError) {
      if code < 0 { throw CaptureError(owner, code: -code, attempt) }
    }
    var allocated: OpaquePointer?
    try check(snd_pcm_hw_params_malloc(&allocated), "describe its audio")
    defer { snd_pcm_hw_params_free(allocated) }
    guard let parameters = allocated else { throw CaptureError(owner, .unusable("there is no memory")) }
    try check(snd_pcm_hw_params_any(pcm, parameters), "ask what it offers")
    try check(
      snd_pcm_hw_params_set_access(pcm, parameters, SND_PCM_ACCESS_RW_INTERLEAVED), "take its channels interleaved")
    let format = SampleFormat.allCases.first { snd_pcm_hw_params_test_format(pcm, parameters, $0.device) == 0 }
    guard let format else {
      throw CaptureError(
        owner, .unusable("it has no supported sample format; plug\(settings.device) may convert it"))
    }
    try check(snd_pcm_hw_params_set_format(pcm, parameters, format.device), "set its format")
    var channels = UInt32(settings.channels ?? 2)
    try check(snd_pcm_hw_params_set_channels_near(pcm, parameters, &channels), "set its channels")
    if let wanted = settings.channels, wanted != Int(channels) {
      throw CaptureError(owner, .unusable("it has \(channels) channels, not \(wanted)"))
    }
    guard (1...mostChannels).contains(Int(channels)) else {
      throw CaptureError(owner, .unusable("it has \(channels) channels, more than \(mostChannels)"))
    }
    var rate = UInt32(settings.rate ?? 48000)
    try check(snd_pcm_hw_params_set_rate_near(pcm, parameters, &rate, nil), "set its rate")
    if let wanted = settings.rate, wanted != Int(rate) {
      throw CaptureError(owner, .unusable("it offers \(rate) Hz, not \(wanted)"))
    }
    var period = snd_pcm_uframes_t(Int(rate) * periodMilliseconds / 1000)
    try check(snd_pcm_hw_params_set_period_size_near(pcm, parameters, &period, nil), "set its period")
    var buffer = snd_pcm_uframes_t(Int(rate) * bufferMilliseconds / 1000)
    try check(snd_pcm_hw_params_set_buffer_size_near(pcm, parameters, &buffer), "set its buffer")
    try check(snd_pcm_hw_params(pcm, parameters), "set its format")
    try stampTimes(pcm, owner)
    return (Int(rate), Int(channels), format)
  }

  /// Sets times on the monotonic clock, like those of the camera.
  private static func stampTimes(_ pcm: OpaquePointer, _ owner: CaptureError.Device) throws(CaptureError) {
    var allocated: OpaquePointer?
    guard snd_pcm_sw_params_malloc(&allocated) >= 0, let parameters = allocated else { return }
    defer { snd_pcm_sw_params_free(allocated) }
    snd_pcm_sw_params_current(pcm, parameters)
    snd_pcm_sw_params_set_tstamp_mode(pcm, parameters, SND_PCM_TSTAMP_ENABLE)
    snd_pcm_sw_params_set_tstamp_type(pcm, parameters, SND_PCM_TSTAMP_TYPE_MONOTONIC)
    let code = snd_pcm_sw_params(pcm, parameters)
    if code < 0 { throw CaptureError(owner, code: -code, "make it report times") }
  }

  /// Waits for samples and passes them to `look`. False if none came in time, or if the device was restarted after an
  /// overrun. Throws if the device has gone.
  func next(milliseconds: Int32, now: () -> MonotonicTime, _ look: (Block) throws -> Void) throws -> Bool {
    let ready = snd_pcm_wait(handle, milliseconds)
    if ready == 0 { return false }
    if ready < 0 {
      try recover(ready)
      return false
    }
    let time = firstSampleTime(now())
    let count = snd_pcm_readi(handle, buffer.baseAddress, snd_pcm_uframes_t(rate / 10))
    if count == -Int(EAGAIN) { return false }
    guard count >= 0 else {
      try recover(Int32(count))
      return false
    }
    try look(Block(bytes: samples(Int(count)), count: Int(count), time: time))
    return true
  }

  /// The first samples of the buffer, in libswresample's format.
  private func samples(_ count: Int) -> UnsafeRawBufferPointer {
    let read = UnsafeRawBufferPointer(rebasing: buffer[..<(count * bytesPerSample)])
    guard sampleFormat == .packed24 else { return read }
    SampleFormat.widen(read, into: wide)
    return UnsafeRawBufferPointer(rebasing: wide[..<(count * channels * 4)])
  }

  /// Capture time of the first readable sample: the present time minus the duration of the available samples.
  private func firstSampleTime(_ now: MonotonicTime) -> MonotonicTime {
    var available: snd_pcm_uframes_t = 0
    var stamp = timespec()
    let told = snd_pcm_htimestamp(handle, &available, &stamp) >= 0
    var time = MonotonicTime(nanoseconds: stamp.nanoseconds)
    // Some plugins state no time. The present time is close enough.
    if !told || time == .zero || (now &- time).magnitude > UInt64(Self.oldestStamp) {
      available = snd_pcm_uframes_t(max(0, snd_pcm_avail(handle)))
      time = now
    }
    return time &- MediaTime(ticks: Int64(available), timescale: UInt32(rate)).nanoseconds
  }

  private func recover(_ code: Int32) throws(CaptureError) {
    guard code == -EPIPE || code == -ESTRPIPE || code == -EINTR else {
      throw CaptureError(.microphone(device), .lost)
    }
    overruns += 1
    guard snd_pcm_prepare(handle) >= 0, snd_pcm_start(handle) >= 0 else {
      throw CaptureError(.microphone(device), .lost)
    }
  }
}
