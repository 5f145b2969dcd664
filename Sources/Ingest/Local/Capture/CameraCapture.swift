internal import Base
internal import FMP4
internal import Glibc
internal import LibAV
internal import Logging
internal import Synchronization

/// The camera's thread: opens the camera and converts its frames. Shows a slate while the camera is away, and changes
/// to another camera on request.
final class CameraCapture: Sendable {
  private let requested: RequestedSetting<CameraSettings>
  private let controls = Mutex<[CameraSettings.Control]>([])
  private let keyFrame = KeyFrameRequest()
  private let queue: FrameQueue
  private let mux: CaptureMux
  private let clock: SteadyClock
  private let publication: LocalPublication
  private let figures: CaptureFigures

  /// Pause before the next attempt to open a camera, in nanoseconds.
  private static let retry: Int64 = 1_000_000_000
  /// A camera without a frame for this long counts as lost.
  private static let longestSilence: Int64 = 2_000_000_000
  /// Most time for an encoder to output everything it holds.
  private static let longestFlush: Int64 = 1_000_000_000
  /// A longer opening leaves a visible gap, so the slate is shown.
  private static let longestOpening: Int64 = 500_000_000
  private static let usualSize = CameraSettings.Size(width: 1280, height: 720)

  init(
    _ requested: RequestedSetting<CameraSettings>, queue: FrameQueue, mux: CaptureMux, clock: SteadyClock,
    publication: LocalPublication, figures: CaptureFigures
  ) {
    self.requested = requested
    self.queue = queue
    self.mux = mux
    self.clock = clock
    self.publication = publication
    self.figures = figures
  }

  /// Sets controls of the present camera soon.
  func set(_ controls: [CameraSettings.Control]) { self.controls.withLock { $0 += controls } }

  /// Requests a key frame from a camera that encodes its video itself.
  func refresh() { keyFrame.ask() }

  func run() throws {
    var memory = CameraState()
    defer { logTotals() }
    while !publication.isEnding {
      let requested = requested.current
      if memory.version != requested.number {
        memory.begin(requested.value, version: requested.number)
        announce(requested.value.device)
      }
      do {
        // Without a requested size, another camera should send the last one's size and rate.
        var settings = requested.value
        settings.size = settings.size ?? memory.size
        settings.frameRate = settings.frameRate ?? memory.rate
        let camera = try DeviceOpening.open({ [settings, place = memory.place] in
          var settings = settings
          if let place { settings.device = place.path(known: settings.device) }
          return try Camera(settings)
        }) { try meanwhile(requested, &memory) }
        // It is no longer wanted, or another camera is.
        guard let camera else { continue }
        memory.found(camera)
        try stream(camera, requested, &memory)
      } catch let error as CaptureError {
        if memory.told?.reason != error.reason { publication.logger.warning("\(error)") }
        memory.told = error
        figures.update { status in
          status.video?.state = .away("\(error)")
          status.video?.keyFrames = .encoder
        }
        try wait(requested, &memory)
      }
    }
  }

  /// Reports the requested camera, whether it is present or not.
  private func announce(_ device: String) {
    figures.update { status in
      guard var video = status.video, video.device != device else { return }
      (video.device, video.name, video.mode) = (device, "", "")
      (video.state, video.controls) = (.starting, [])
      status.video = video
    }
  }

  /// Called while a camera is being opened. Shows the slate if the camera was away already, or if opening takes long.
  private func meanwhile(_ requested: RequestedSetting<CameraSettings>.Version, _ memory: inout CameraState) throws
    -> Int64?
  {
    guard !publication.isEnding, self.requested.current.number == requested.number else { return nil }
    let isLate = memory.lastTime != .min && clock.monotonic() &- memory.lastTime > Self.longestOpening
    return memory.told != nil || isLate ? try showSlate(requested, &memory) : Self.longestOpening
  }

  /// Reports a camera after its first frame.
  private func noteFirstFrame(_ camera: Camera, _ memory: inout CameraState) {
    let (mode, name) = (camera.mode, camera.handle.name)
    let rate = Decimals.trimmed(thousandths: Int((mode.rate.framesPerSecond * 1000).rounded()))
    let words = "\(mode.size.width)×\(mode.size.height) \(mode.format.rawValue) \(rate) fps"
    publication.logger.notice(
      "\(memory.told == nil ? "the camera" : "back again: the camera") \(name), \(words)")
    memory.told = nil
    let listed = camera.handle.controls()
    let keyFrames: CaptureStatus.KeyFrames =
      if !mode.format.isCoded { .encoder } else if camera.handle.canForceKeyFrames { .camera } else { .unasked }
    figures.update { status in
      status.video?.device = camera.handle.path
      status.video?.name = name
      status.video?.mode = words
      status.video?.state = .running
      status.video?.controls = listed
      status.video?.keyFrames = keyFrames
      if mode.format.isCoded { status.video?.encoder = nil }
    }
  }

  private func stream(
    _ camera: Camera, _ requested: RequestedSetting<CameraSettings>.Version, _ memory: inout CameraState
  ) throws {
    let converter = FrameConverter(size: memory.size ?? camera.mode.size)
    let passthrough = camera.mode.format.isCoded ? Passthrough(rotation: requested.value.rotation) : nil
    var lastSeen = clock.monotonic()
    var hasSent = false
    // Keeps the number of broken frames of this camera's driver, however streaming ends.
    defer { memory.brokenBefore += Int64(camera.broken) }
    while !publication.isEnding, self.requested.current.number == requested.number {
      apply(to: camera)
      // A camera that is back but sends nothing still counts as away.
      let patience = hasSent || memory.told == nil ? 100_000_000 : try showSlate(requested, &memory)
      let seen = try camera.next(milliseconds: Int32(clamping: max(1, min(patience, 100_000_000) / 1_000_000))) {
        shot in
        count(shot, rate: camera.mode.rate, &memory)
        let time = max(shot.time ?? clock.monotonic(), memory.lastTime &+ 1)
        if let passthrough {
          guard passthrough.pass(shot.bytes, at: time, mux, beginning: drain) else { return }
        } else if let frame = try convert(shot, of: camera, converter, requested.value.pixelRotation) {
          push(frame, time, requested.value, memory)
        } else {
          memory.broken += 1
          return
        }
        if !hasSent { noteFirstFrame(camera, &memory) }
        hasSent = true
        memory.lastTime = time
      }
      let now = clock.monotonic()
      let broken = memory.brokenBefore + memory.broken + Int64(camera.broken)
      figures.update { $0.video?.broken = broken }
      if seen { lastSeen = now }
      if now &- lastSeen > Self.longestSilence {
        throw CaptureError(.camera(requested.value.device), hasSent ? .lost : .silent)
      }
    }
  }

  private func convert(
    _ shot: Camera.Shot, of camera: Camera, _ converter: FrameConverter, _ rotation: Rotation
  ) throws(CaptureError) -> VideoFrame? {
    try CaptureError.blaming(.camera(camera.handle.path)) { () throws(LibAVError) in
      try converter.convert(shot.bytes, mode: camera.mode, stride: camera.stride)?.turned(by: rotation)
    }
  }

  /// The encoder's last frames must come before frames that bypass it.
  private func drain() {
    queue.flush()
    let end = clock.monotonic() &+ Self.longestFlush
    while !queue.isIdle, clock.monotonic() < end { DedicatedThread.sleep(nanoseconds: 1_000_000) }
  }

  private func apply(to camera: Camera) {
    if keyFrame.take(now: clock.monotonic()), camera.mode.format.isCoded { camera.handle.forceKeyFrame() }
    let wanted = controls.withLock { controls in
      defer { controls = [] }
      return controls
    }
    guard !wanted.isEmpty else { return }
    do throws(CaptureError) {
      try camera.handle.set(wanted)
    } catch {
      publication.logger.warning("\(error)")
    }
    let listed = camera.handle.controls()
    figures.update { $0.video?.controls = listed }
  }

  private func count(_ shot: Camera.Shot, rate: FrameRate, _ memory: inout CameraState) {
    let lost = memory.lost(before: shot.sequence, at: clock.monotonic(), rate: rate)
    figures.update { status in
      status.video?.taken += 1
      status.video?.lostByDriver += lost
    }
  }

  private func push(_ frame: VideoFrame, _ time: MonotonicTime, _ settings: CameraSettings, _ memory: CameraState) {
    guard let rate = memory.rate else { return }
    let isTaken = queue.push(
      QueuedFrame(
        image: frame, time: time, rate: rate, rotation: settings.trackRotation, encoding: settings.encoding))
    guard !isTaken else { return }
    let dropped = queue.dropped
    figures.update { $0.video?.leftOut = dropped }
    // The 1st, 10th, 100th … is logged.
    guard String(dropped).count > String(dropped - 1).count || dropped == 1 else { return }
    publication.logger.warning(
      "the encoder was too busy for \(dropped) of the camera's frames so far; request a smaller size or a lower rate")
  }

  /// Shows the slate at the frame rate until the next attempt.
  private func wait(_ requested: RequestedSetting<CameraSettings>.Version, _ memory: inout CameraState) throws {
    let end = clock.monotonic() &+ Self.retry
    if memory.size == nil {
      let size = requested.value.size ?? Self.usualSize
      memory.size = CameraSettings.Size(width: size.width & ~1, height: size.height & ~1)
      memory.rate = requested.value.frameRate ?? FrameRate(numerator: 30, denominator: 1)
    }
    while !publication.isEnding, clock.monotonic() < end, self.requested.current.number == requested.number {
      let due = try showSlate(requested, &memory)
      if due > 0 { DedicatedThread.sleep(nanoseconds: due) }
    }
  }

  /// Pushes one frame of the slate if it is due. Returns the nanoseconds until the next one.
  private func showSlate(_ requested: RequestedSetting<CameraSettings>.Version, _ memory: inout CameraState) throws
    -> Int64
  {
    // It has the size of rotated frames, but is upright itself.
    let size = (memory.size ?? Self.usualSize).turned(by: requested.value.pixelRotation)
    if memory.noSignal?.size != size { memory.noSignal = (size, try NoSignalFrame.image(size: size)) }
    let step = Int64(1e9 / (memory.rate?.framesPerSecond ?? 30))
    let now = clock.monotonic()
    let due = memory.lastTime == .min ? now : memory.lastTime &+ step
    guard let noSignal = memory.noSignal, due <= now else { return due &- now }
    // After a long delay the slate continues from now.
    memory.lastTime = now &- due > 4 &* step ? now : due
    figures.update { $0.video?.keyFrames = .encoder }
    // A separate reference, because the encoder may keep the last one.
    push(try noSignal.image.shared(), memory.lastTime, requested.value, memory)
    return memory.lastTime &+ step &- now
  }

  private func logTotals() {
    guard let video = figures.status.video else { return }
    let losses =
      "\(video.lostByDriver) dropped by the driver, \(video.broken) broken, \(video.leftOut) dropped by a busy encoder"
    publication.logger.notice("\(video.taken) frames captured; lost: \(losses)")
  }
}
