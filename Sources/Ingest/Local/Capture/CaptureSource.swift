package import Base
package import FMP4
internal import LibAV
package import Logging
package import Publishing

/// A camera and a microphone of this machine as a publisher. This process captures and encodes them and puts them on
/// one timeline. A missing device is bridged by a slate or silence, and used again when it returns.
package final class CaptureSource: MediaSource {
  package let name: StreamName
  private let clock: SteadyClock
  private let publication: LocalPublication
  private let figures: CaptureFigures
  private let audio: RequestedSetting<MicrophoneSettings>?
  private let video: RequestedSetting<CameraSettings>?
  private let threads: RequestedSetting<CaptureThreads?>

  /// The threads that changes are passed to.
  private struct CaptureThreads: Sendable {
    let camera: CameraCapture
    let encoder: EncoderWorker
    let figures: CaptureFigures

    func askForKeyFrame() -> CaptureRefusal? {
      guard let video = figures.status.video else { return .hasNoCamera }
      switch video.keyFrames {
      case .encoder: encoder.refresh()
      case .camera: camera.refresh()
      case .unasked: return .hasNoKeyFrames(device: video.device)
      }
      return nil
    }
  }

  package init(
    name: StreamName, settings: CaptureSettings, gate: any PublishGate, clock: SteadyClock, logger: Logger
  ) {
    self.name = name
    self.clock = clock
    let threads = RequestedSetting<CaptureThreads?>(nil)
    self.threads = threads
    publication = LocalPublication(
      name: name, kind: .capture, gate: gate, logger: logger, keyFrameInterval: Self.keyFrameInterval(settings)
    ) {
      // The result is ignored: a camera without key frame requests keeps its own cadence.
      _ = threads.current.value?.askForKeyFrame()
    }
    figures = CaptureFigures(
      CaptureStatus(
        video: settings.camera.map { CaptureStatus.Video(device: $0.device) },
        audio: settings.microphone.map { CaptureStatus.Audio(device: $0.device) }))
    audio = settings.microphone.map { RequestedSetting($0) }
    video = settings.camera.map { RequestedSetting($0) }
  }

  /// Known only if weir's encoder certainly makes the key frames. Without a requested format, the camera may offer only
  /// video that it encodes itself.
  private static func keyFrameInterval(_ settings: CaptureSettings) -> MediaTime? {
    guard let camera = settings.camera, let format = camera.format, !format.isCoded else { return nil }
    return MediaTime(milliseconds: Int64(camera.encoding.keyFrameMilliseconds))
  }

  package var status: CaptureStatus? { figures.status }

  package var settings: CaptureSettings? {
    CaptureSettings(camera: video?.current.value, microphone: audio?.current.value)
  }

  @discardableResult
  package func run() async -> EndReason {
    await publication.run {
      try CaptureLibrary.require()
      try await self.capture()
    }
  }

  package func stop(_ reason: EndReason) { publication.stop(reason) }

  package func change(_ change: CaptureChange) -> CaptureRefusal? {
    guard !publication.isEnding else { return .hasEnded }
    switch change {
    case .camera(let settings):
      guard let video else { return .hasNoCamera }
      let present = video.current.value
      if settings.device == present.device, settings.format == present.format, settings.encoding != present.encoding,
        figures.status.video.map({ $0.keyFrames != .encoder }) == true
      {
        return .codesByItself(device: settings.device)
      }
      video.change(to: settings)
    case .microphone(let settings):
      guard let audio else { return .hasNoMicrophone }
      // The encoder stays the same for the whole track.
      let present = audio.current.value
      guard settings.coding == present.coding else { return .isFixed(option: "codec=\(settings.coding.rawValue)") }
      guard settings.bitRate == present.bitRate else { return .isFixed(option: "bitrate=\(settings.bitRate)") }
      audio.change(to: settings)
    case .controls(let controls):
      guard let status = figures.status.video, let threads = threads.current.value else { return .hasNoCamera }
      for requested in controls {
        guard let known = status.controls.first(where: { $0.name == requested.name }) else {
          return .unknownControl(requested.name, status.controls.map(\.name))
        }
        guard (known.minimum...max(known.minimum, known.maximum)).contains(requested.value) else {
          return .outOfRange(known, requested.value)
        }
      }
      threads.camera.set(controls)
    case .keyFrame:
      guard let threads = threads.current.value else { return .hasNoCamera }
      return threads.askForKeyFrame()
    }
    return nil
  }

  private func capture() async throws {
    let mux = CaptureMux(
      publication, reading: clock.reading, wantsVideo: video != nil, wantsAudio: audio != nil)
    let outcome = FirstError()
    try await withThrowingTaskGroup(of: Void.self) { group in
      if let video {
        let queue = FrameQueue(clock: clock)
        let taking = CameraCapture(
          video, queue: queue, mux: mux, clock: clock, publication: publication, figures: figures)
        let coding = EncoderWorker(queue: queue, sink: mux, clock: clock, figures: figures, logger: publication.logger)
        threads.change(to: CaptureThreads(camera: taking, encoder: coding, figures: figures))
        group.addTask { try await self.thread("weir-camera", outcome, { queue.close() }) { try taking.run() } }
        group.addTask { try await self.thread("weir-encode", outcome) { try coding.run() } }
      }
      if let audio {
        let listening = MicrophoneCapture(audio, mux: mux, clock: clock, publication: publication, figures: figures)
        group.addTask { try await self.thread("weir-audio", outcome) { try listening.run() } }
      }
      try await group.waitForAll()
    }
    mux.finish()
    try outcome.get()
  }

  /// Runs one thread. If it fails, the others end too.
  private func thread(
    _ name: String, _ outcome: FirstError, _ after: @escaping @Sendable () -> Void = {},
    _ work: @escaping @Sendable () throws -> Void
  ) async throws {
    try await DedicatedThread.run(named: name) {
      outcome.keep {
        do {
          try work()
        } catch {
          self.publication.stop(.failed("\(error)"))
          throw error
        }
      }
      after()
    }
  }
}
