internal import FMP4
internal import Logging
internal import NIOCore

/// The thread that listens: opens the microphone, brings its samples onto the clock, codes them, fills in silence while
/// it is away, and goes over to another microphone when it is asked to.
final class SoundLane: Sendable {
  private let wish: Wish<MicrophoneSettings>
  private let mux: CaptureMux
  private let clock: SteadyClock
  private let publication: OwnPublication
  private let figures: CaptureFigures

  private static let retry: Int64 = 1_000_000_000
  private static let longestSilence: Int64 = 1_000_000_000
  /// Silence is filled in up to this long ago, so that a microphone that begins meanwhile is not cut.
  private static let silenceDelay: Int64 = 40_000_000
  /// A microphone that takes longer to open leaves a hole that is heard.
  private static let longestOpening: Int64 = 100_000_000
  /// How often silence is filled in.
  private static let step: Int64 = 10_000_000

  init(
    _ wish: Wish<MicrophoneSettings>, mux: CaptureMux, clock: SteadyClock, publication: OwnPublication,
    figures: CaptureFigures
  ) {
    self.wish = wish
    self.mux = mux
    self.clock = clock
    self.publication = publication
    self.figures = figures
  }

  func run() throws {
    let first = wish.current.value
    let encoder = try AudioEncoder(first.coding, sampleRate: SoundAligner.rate, bitRate: first.bitRate)
    mux.describe(audio: encoder.codec, rate: UInt32(SoundAligner.rate))
    let aligner = SoundAligner()
    let framer = SoundFramer(encoder)
    var told: CaptureError?
    var version = 0
    while !publication.isEnding {
      let wish = wish.current
      if wish.number != version {
        (told, version) = (nil, wish.number)
        announce(wish.value.device)
      }
      do {
        let began = clock.monotonicNanoseconds()
        let microphone = try DeviceOpening.open({ try Microphone(wish.value) }) {
          try meanwhile(isAway: told != nil, wish.number, since: began, aligner, framer)
        }
        // Nobody wants it any more, or another one is wanted.
        guard let microphone else { continue }
        try CaptureError.blaming(.microphone(wish.value.device)) { () throws(LibAVError) in
          try aligner.connect(rate: microphone.rate, channels: microphone.channels, format: microphone.format)
        }
        let what = "the microphone \(wish.value.device), \(microphone.rate) Hz, \(microphone.channels) channels"
        publication.logger.notice("\(told == nil ? what : "back again: " + what)")
        told = nil
        greet(microphone, wish.value)
        try listen(microphone, wish, aligner, framer)
      } catch let error as CaptureError {
        if told?.reason != error.reason { publication.logger.warning("\(error)") }
        told = error
        figures.update { $0.sound?.state = .away("\(error)") }
        try wait(version, aligner, framer)
      }
    }
    try framer.finish { self.give($0, $1, $2, aligner) }
    tell(aligner)
  }

  /// Another microphone is meant from here on, whether it is there or not.
  private func announce(_ device: String) {
    figures.update { status in
      guard status.sound?.device != device else { return }
      status.sound?.device = device
      status.sound?.state = .starting
    }
  }

  private func greet(_ microphone: Microphone, _ settings: MicrophoneSettings) {
    figures.update { status in
      status.sound?.device = settings.device
      status.sound?.state = .running
      status.sound?.rate = microphone.rate
      status.sound?.channels = microphone.channels
    }
  }

  private func tell(_ aligner: SoundAligner) {
    let overruns = figures.status.sound?.overruns ?? 0
    let gaps =
      "\(aligner.bridged) of them silence that bridged gaps, \(overruns) overruns, skew \(aligner.skew / 1000) µs"
    publication.logger.notice("\(aligner.produced) samples of sound, \(gaps)")
  }

  private func listen(
    _ microphone: Microphone, _ wish: Wish<MicrophoneSettings>.Version, _ aligner: SoundAligner, _ framer: SoundFramer
  ) throws {
    let device = CaptureError.Device.microphone(wish.value.device)
    var lastHeard = clock.monotonicNanoseconds()
    let overrunsBefore = figures.status.sound?.overruns ?? 0
    while !publication.isEnding, self.wish.current.number == wish.number {
      let overruns = microphone.overruns
      let heard = try microphone.next(milliseconds: 100, now: clock.monotonicNanoseconds) { block in
        try CaptureError.blaming(device) { () throws(LibAVError) in
          try aligner.add(block.bytes, count: block.count, time: block.time) { framer.collect($0, $1) }
        }
        try framer.encode { self.give($0, $1, $2, aligner) }
      }
      figures.update { status in
        status.sound?.overruns = overrunsBefore + microphone.overruns
        status.sound?.bridgedSamples = aligner.bridged
        status.sound?.skewMicroseconds = aligner.skew / 1000
      }
      if microphone.overruns > overruns { aligner.interrupt() }
      let now = clock.monotonicNanoseconds()
      // A device that has run over is there: it was this thread that did not come.
      if heard || microphone.overruns > overruns { lastHeard = now }
      if now &- lastHeard > Self.longestSilence { throw CaptureError(device, .lost) }
    }
  }

  private func wait(_ version: Int, _ aligner: SoundAligner, _ framer: SoundFramer) throws {
    let end = clock.monotonicNanoseconds() &+ Self.retry
    while !publication.isEnding, clock.monotonicNanoseconds() < end, wish.current.number == version {
      try fillIn(aligner, framer)
      DedicatedThread.sleep(nanoseconds: Self.step)
    }
  }

  /// While a microphone is being opened: one that is away is away still, and one that takes its time is bridged, too. Nil
  /// where another one is wanted meanwhile.
  private func meanwhile(
    isAway: Bool, _ version: Int, since began: Int64, _ aligner: SoundAligner, _ framer: SoundFramer
  ) throws -> Int64? {
    guard !publication.isEnding, wish.current.number == version else { return nil }
    let heardUntil = aligner.start == nil ? began : aligner.end
    let isLate = clock.monotonicNanoseconds() &- heardUntil > Self.longestOpening
    if isAway || isLate { try fillIn(aligner, framer) }
    return Self.step
  }

  private func fillIn(_ aligner: SoundAligner, _ framer: SoundFramer) throws {
    aligner.silence(until: clock.monotonicNanoseconds() &- Self.silenceDelay) { framer.collect($0, $1) }
    try framer.encode { self.give($0, $1, $2, aligner) }
    figures.update { $0.sound?.bridgedSamples = aligner.bridged }
  }

  private func give(_ samples: Int64, _ duration: Int, _ payload: ByteBuffer, _ aligner: SoundAligner) {
    mux.sound(start: aligner.start ?? 0, samples: samples, duration: UInt32(duration), payload: payload)
  }
}
