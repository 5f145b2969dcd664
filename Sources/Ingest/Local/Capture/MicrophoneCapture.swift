internal import Base
internal import LibAV
internal import Logging
internal import NIOCore

/// The microphone's thread: opens the microphone, aligns its samples with the clock and encodes them. Fills in silence
/// while the microphone is away, and changes to another one on request.
final class MicrophoneCapture: Sendable {
  private let requested: RequestedSetting<MicrophoneSettings>
  private let mux: CaptureMux
  private let clock: SteadyClock
  private let publication: LocalPublication
  private let figures: CaptureFigures

  private static let retry: Int64 = 1_000_000_000
  private static let longestSilence: Int64 = 1_000_000_000
  /// Silence is filled in up to this long ago, so that a microphone that starts meanwhile is not cut.
  private static let silenceDelay: Int64 = 40_000_000
  /// A longer opening leaves an audible gap.
  private static let longestOpening: Int64 = 100_000_000
  /// Interval of filling in silence.
  private static let step: Int64 = 10_000_000

  init(
    _ requested: RequestedSetting<MicrophoneSettings>, mux: CaptureMux, clock: SteadyClock,
    publication: LocalPublication,
    figures: CaptureFigures
  ) {
    self.requested = requested
    self.mux = mux
    self.clock = clock
    self.publication = publication
    self.figures = figures
  }

  func run() throws {
    let first = requested.current.value
    let encoder = try AudioEncoder(first.coding, sampleRate: AudioAligner.rate, bitRate: first.bitRate)
    mux.describe(audio: encoder.codec, rate: UInt32(AudioAligner.rate))
    let aligner = AudioAligner()
    let framer = AudioFramer(encoder)
    var told: CaptureError?
    var version = 0
    while !publication.isEnding {
      let requested = requested.current
      if requested.number != version {
        (told, version) = (nil, requested.number)
        announce(requested.value.device)
      }
      do {
        let began = clock.monotonic()
        let microphone = try DeviceOpening.open({ try Microphone(requested.value) }) {
          try meanwhile(isAway: told != nil, requested.number, since: began, aligner, framer)
        }
        // It is no longer wanted, or another microphone is.
        guard let microphone else { continue }
        try CaptureError.blaming(.microphone(requested.value.device)) { () throws(LibAVError) in
          try aligner.connect(rate: microphone.rate, channels: microphone.channels, format: microphone.format)
        }
        let what = "the microphone \(requested.value.device), \(microphone.rate) Hz, \(microphone.channels) channels"
        publication.logger.notice("\(told == nil ? what : "back again: " + what)")
        told = nil
        noteStart(microphone, requested.value)
        try listen(microphone, requested, aligner, framer)
      } catch let error as CaptureError {
        if told?.reason != error.reason { publication.logger.warning("\(error)") }
        told = error
        figures.update { $0.audio?.state = .away("\(error)") }
        try wait(version, aligner, framer)
      }
    }
    try framer.finish { self.give($0, $1, $2, aligner) }
    tell(aligner)
  }

  /// Reports the requested microphone, whether it is present or not.
  private func announce(_ device: String) {
    figures.update { status in
      guard status.audio?.device != device else { return }
      status.audio?.device = device
      status.audio?.state = .starting
    }
  }

  private func noteStart(_ microphone: Microphone, _ settings: MicrophoneSettings) {
    figures.update { status in
      status.audio?.device = settings.device
      status.audio?.state = .running
      status.audio?.rate = microphone.rate
      status.audio?.channels = microphone.channels
    }
  }

  private func tell(_ aligner: AudioAligner) {
    let overruns = figures.status.audio?.overruns ?? 0
    let gaps =
      "\(aligner.bridged) of them silence that bridged gaps, \(overruns) overruns, skew \(aligner.skew / 1000) µs"
    publication.logger.notice("\(aligner.produced) samples of audio, \(gaps)")
  }

  private func listen(
    _ microphone: Microphone, _ requested: RequestedSetting<MicrophoneSettings>.Version, _ aligner: AudioAligner,
    _ framer: AudioFramer
  ) throws {
    let device = CaptureError.Device.microphone(requested.value.device)
    var lastHeard = clock.monotonic()
    let overrunsBefore = figures.status.audio?.overruns ?? 0
    while !publication.isEnding, self.requested.current.number == requested.number {
      let overruns = microphone.overruns
      let heard = try microphone.next(milliseconds: 100, now: clock.monotonic) { block in
        try CaptureError.blaming(device) { () throws(LibAVError) in
          try aligner.add(block.bytes, count: block.count, time: block.time) { framer.collect($0, $1) }
        }
        try framer.encode { self.give($0, $1, $2, aligner) }
      }
      figures.update { status in
        status.audio?.overruns = overrunsBefore + microphone.overruns
        status.audio?.bridgedSamples = aligner.bridged
        status.audio?.skewMicroseconds = aligner.skew / 1000
      }
      if microphone.overruns > overruns { aligner.interrupt() }
      let now = clock.monotonic()
      // A device with an overrun is present: this thread was late.
      if heard || microphone.overruns > overruns { lastHeard = now }
      if now &- lastHeard > Self.longestSilence { throw CaptureError(device, .lost) }
    }
  }

  private func wait(_ version: Int, _ aligner: AudioAligner, _ framer: AudioFramer) throws {
    let end = clock.monotonic() &+ Self.retry
    while !publication.isEnding, clock.monotonic() < end, requested.current.number == version {
      try fillIn(aligner, framer)
      DedicatedThread.sleep(nanoseconds: Self.step)
    }
  }

  /// Called while a microphone is being opened. Fills in silence if it was away already, or if opening takes long. Nil
  /// if another one is wanted meanwhile.
  private func meanwhile(
    isAway: Bool, _ version: Int, since began: MonotonicTime, _ aligner: AudioAligner, _ framer: AudioFramer
  ) throws -> Int64? {
    guard !publication.isEnding, requested.current.number == version else { return nil }
    let heardUntil = aligner.start == nil ? began : aligner.end
    let isLate = clock.monotonic() &- heardUntil > Self.longestOpening
    if isAway || isLate { try fillIn(aligner, framer) }
    return Self.step
  }

  private func fillIn(_ aligner: AudioAligner, _ framer: AudioFramer) throws {
    aligner.silence(until: clock.monotonic() &- Self.silenceDelay) { framer.collect($0, $1) }
    try framer.encode { self.give($0, $1, $2, aligner) }
    figures.update { $0.audio?.bridgedSamples = aligner.bridged }
  }

  private func give(_ samples: Int64, _ duration: Int, _ payload: ByteBuffer, _ aligner: AudioAligner) {
    mux.audio(start: aligner.start ?? .zero, samples: samples, duration: UInt32(duration), payload: payload)
  }
}
