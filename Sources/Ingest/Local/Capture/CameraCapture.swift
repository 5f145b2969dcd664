internal import FMP4
internal import Glibc
internal import Logging
internal import Synchronization

/// The thread that takes pictures: opens the camera, converts what it sends, shows a slate while it is away, and goes
/// over to another camera when it is asked to.
final class CameraCapture: Sendable {
  private let requested: RequestedSetting<CameraSettings>
  private let controls = Mutex<[CameraSettings.Control]>([])
  private let keyFrame = KeyFrameRequest()
  private let queue: FrameQueue
  private let mux: CaptureMux
  private let clock: SteadyClock
  private let publication: LocalPublication
  private let figures: CaptureFigures

  /// How long a camera that does not open is left alone.
  private static let retry: Int64 = 1_000_000_000
  /// A camera that sends nothing for so long is taken for lost.
  private static let longestSilence: Int64 = 2_000_000_000
  /// What an encoder that is asked to give out all it holds may take.
  private static let longestFlush: Int64 = 1_000_000_000
  /// A camera that takes longer to open leaves a hole that is seen.
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

  /// Sets controls of the camera that is there, soon.
  func set(_ controls: [CameraSettings.Control]) { self.controls.withLock { $0 += controls } }

  /// Asks the camera, which codes by itself, for a key frame, soon.
  func refresh() { keyFrame.ask() }

  func run() throws {
    var memory = CameraState()
    defer { tell() }
    while !publication.isEnding {
      let requested = requested.current
      if memory.version != requested.number {
        memory.begin(requested.value, version: requested.number)
        announce(requested.value.device)
      }
      do {
        // Another one, which nobody asked a size of, is to send what the last one sent.
        var settings = requested.value
        settings.size = settings.size ?? memory.size
        settings.frameRate = settings.frameRate ?? memory.rate
        let camera = try DeviceOpening.open({ [settings, place = memory.place] in
          var settings = settings
          if let place { settings.device = place.path(known: settings.device) }
          return try Camera(settings)
        }) { try meanwhile(requested, &memory) }
        // Nobody wants it any more, or another one is wanted.
        guard let camera else { continue }
        memory.found(camera)
        try stream(camera, requested, &memory)
      } catch let error as CaptureError {
        if memory.told?.reason != error.reason { publication.logger.warning("\(error)") }
        memory.told = error
        figures.update { status in
          status.picture?.state = .away("\(error)")
          status.picture?.keyFrames = .encoder
        }
        try wait(requested, &memory)
      }
    }
  }

  /// Another camera is meant from here on, whether it is there or not.
  private func announce(_ device: String) {
    figures.update { status in
      guard var picture = status.picture, picture.device != device else { return }
      (picture.device, picture.name, picture.mode) = (device, "", "")
      (picture.state, picture.controls) = (.starting, [])
      status.picture = picture
    }
  }

  /// While a camera is being opened: one that is away is away still, and one that takes its time is bridged, too.
  private func meanwhile(_ requested: RequestedSetting<CameraSettings>.Version, _ memory: inout CameraState) throws
    -> Int64?
  {
    guard !publication.isEnding, self.requested.current.number == requested.number else { return nil }
    let isLate = memory.lastTime != .min && clock.monotonicNanoseconds() &- memory.lastTime > Self.longestOpening
    return memory.told != nil || isLate ? try showSlate(requested, &memory) : Self.longestOpening
  }

  /// Its first picture has come.
  private func greet(_ camera: Camera, _ memory: inout CameraState) {
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
      status.picture?.device = camera.handle.path
      status.picture?.name = name
      status.picture?.mode = words
      status.picture?.state = .running
      status.picture?.controls = listed
      status.picture?.keyFrames = keyFrames
      if mode.format.isCoded { status.picture?.encoder = nil }
    }
  }

  private func stream(
    _ camera: Camera, _ requested: RequestedSetting<CameraSettings>.Version, _ memory: inout CameraState
  ) throws {
    let converter = FrameConverter(size: memory.size ?? camera.mode.size)
    let passage = camera.mode.format.isCoded ? Passthrough(rotation: requested.value.rotation) : nil
    var lastSeen = clock.monotonicNanoseconds()
    var hasSent = false
    // However it ends: what this camera's driver called broken stays counted.
    defer { memory.brokenBefore += Int64(camera.broken) }
    while !publication.isEnding, self.requested.current.number == requested.number {
      apply(to: camera)
      // A camera that came back, and sends nothing yet, is away still.
      let patience = hasSent || memory.told == nil ? 100_000_000 : try showSlate(requested, &memory)
      let seen = try camera.next(milliseconds: Int32(clamping: max(1, min(patience, 100_000_000) / 1_000_000))) {
        shot in
        count(shot, rate: camera.mode.rate, &memory)
        let time = max(shot.time ?? clock.monotonicNanoseconds(), memory.lastTime &+ 1)
        if let passage {
          guard passage.pass(shot.bytes, at: time, mux, beginning: drain) else { return }
        } else if let picture = try convert(shot, of: camera, converter, requested.value.pixelRotation) {
          push(picture, time, requested.value, memory)
        } else {
          memory.broken += 1
          return
        }
        if !hasSent { greet(camera, &memory) }
        hasSent = true
        memory.lastTime = time
      }
      let now = clock.monotonicNanoseconds()
      let broken = memory.brokenBefore + memory.broken + Int64(camera.broken)
      figures.update { $0.picture?.broken = broken }
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

  /// The encoder's last pictures come before those that are passed by it.
  private func drain() {
    queue.flush()
    let end = clock.monotonicNanoseconds() &+ Self.longestFlush
    while !queue.isIdle, clock.monotonicNanoseconds() < end { DedicatedThread.sleep(nanoseconds: 1_000_000) }
  }

  private func apply(to camera: Camera) {
    if keyFrame.take(now: clock.monotonicNanoseconds()), camera.mode.format.isCoded { camera.handle.forceKeyFrame() }
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
    figures.update { $0.picture?.controls = listed }
  }

  private func count(_ shot: Camera.Shot, rate: FrameRate, _ memory: inout CameraState) {
    let lost = memory.lost(before: shot.sequence, at: clock.monotonicNanoseconds(), rate: rate)
    figures.update { status in
      status.picture?.taken += 1
      status.picture?.lostByDriver += lost
    }
  }

  private func push(_ picture: VideoFrame, _ time: Int64, _ settings: CameraSettings, _ memory: CameraState) {
    guard let rate = memory.rate else { return }
    let isTaken = queue.push(
      QueuedFrame(
        picture: picture, time: time, rate: rate, rotation: settings.trackRotation, encoding: settings.encoding))
    guard !isTaken else { return }
    let dropped = queue.dropped
    figures.update { $0.picture?.leftOut = dropped }
    // The 1st, 10th, 100th … is told.
    guard String(dropped).count > String(dropped - 1).count || dropped == 1 else { return }
    publication.logger.warning(
      "the encoder was too busy for \(dropped) of the camera's pictures so far; ask for smaller or fewer ones")
  }

  /// Shows the slate, at a picture's pace, until it is time to try again.
  private func wait(_ requested: RequestedSetting<CameraSettings>.Version, _ memory: inout CameraState) throws {
    let end = clock.monotonicNanoseconds() &+ Self.retry
    if memory.size == nil {
      let size = requested.value.size ?? Self.usualSize
      memory.size = CameraSettings.Size(width: size.width & ~1, height: size.height & ~1)
      memory.rate = requested.value.frameRate ?? FrameRate(numerator: 30, denominator: 1)
    }
    while !publication.isEnding, clock.monotonicNanoseconds() < end, self.requested.current.number == requested.number {
      let due = try showSlate(requested, &memory)
      if due > 0 { DedicatedThread.sleep(nanoseconds: due) }
    }
  }

  /// One picture of the slate where it is time for one; nanoseconds until the next.
  private func showSlate(_ requested: RequestedSetting<CameraSettings>.Version, _ memory: inout CameraState) throws
    -> Int64
  {
    // As large as turned pictures are, but upright itself.
    let size = (memory.size ?? Self.usualSize).turned(by: requested.value.pixelRotation)
    if memory.noSignal?.size != size { memory.noSignal = (size, try NoSignalFrame.picture(size: size)) }
    let step = Int64(1e9 / (memory.rate?.framesPerSecond ?? 30))
    let now = clock.monotonicNanoseconds()
    let due = memory.lastTime == .min ? now : memory.lastTime &+ step
    guard let noSignal = memory.noSignal, due <= now else { return due &- now }
    // After a hiccup the slate goes on from now.
    memory.lastTime = now &- due > 4 &* step ? now : due
    figures.update { $0.picture?.keyFrames = .encoder }
    // A reference of its own: the encoder may keep the one before.
    push(try noSignal.picture.shared(), memory.lastTime, requested.value, memory)
    return memory.lastTime &+ step &- now
  }

  private func tell() {
    guard let picture = figures.status.picture else { return }
    let losses =
      "\(picture.lostByDriver) dropped by the driver, \(picture.broken) broken, \(picture.leftOut) for a busy encoder"
    publication.logger.notice("\(picture.taken) pictures taken; lost: \(losses)")
  }
}
