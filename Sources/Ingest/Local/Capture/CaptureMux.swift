internal import Base
internal import FMP4
internal import NIOCore
internal import Synchronization

/// Joins video and audio of one capture. Waits for the first key frame, puts both on a timeline that begins with it,
/// and passes them to the publication. Audio waits for frames that the encoder still holds. Callable from several
/// threads; calls are serialised.
final class CaptureMux: EncodedFrameSink {
  /// Timescale of the video. Camera times are kept and not put on a grid.
  static let videoTimescale: UInt32 = 90_000

  private struct State {
    var video: TrackDescription?
    var audio: TrackDescription?
    /// Media time 0.
    var origin: MonotonicTime?
    var lastDecode: Int64 = -1
    var lastAudio: Int64 = -1
    /// Audio frames that wait for video, in order.
    var held: [HeldAudio] = []
  }

  /// A coded audio frame.
  private struct HeldAudio {
    /// Capture time of the audio's first sample, and number of samples from it to this frame.
    var start: MonotonicTime
    var samples: Int64
    var duration: UInt32
    var payload: ByteBuffer
    /// Capture time of this frame.
    var time: MonotonicTime
  }

  /// Most lead of audio over video, in nanoseconds. Only encoders that hold frames make audio wait.
  static let longestLead: Int64 = 250_000_000
  /// Longest wait of audio, in nanoseconds: video may have stopped.
  static let longestHold: Int64 = 5_000_000_000

  private let publication: LocalPublication
  private let reading: ClockReading
  private let wantsVideo: Bool
  private let wantsAudio: Bool
  private let state = Mutex(State())

  init(_ publication: LocalPublication, reading: ClockReading, wantsVideo: Bool, wantsAudio: Bool) {
    self.publication = publication
    self.reading = reading
    self.wantsVideo = wantsVideo
    self.wantsAudio = wantsAudio
  }

  /// Describes the video that follows.
  func describe(video codec: Codec, rotation: Rotation) {
    state.withLock { state in
      let track = TrackDescription(id: .video, codec: codec, timescale: Self.videoTimescale, rotation: rotation)
      guard state.video != track else { return }
      state.video = track
      if state.origin != nil { publication.give(.tracks([track] + [state.audio].compactMap(\.self))) }
    }
  }

  func describe(audio codec: Codec, rate: UInt32) {
    state.withLock { $0.audio = TrackDescription(id: .audio, codec: codec, timescale: rate) }
  }

  /// Takes a coded frame.
  func video(
    presentation: MonotonicTime, decode: MonotonicTime, isSync: Bool, isDisposable: Bool, payload: ByteBuffer
  ) {
    state.withLock { state in
      guard !wantsAudio || state.audio != nil else { return }
      if state.origin == nil {
        guard isSync else { return }
        begin(&state, at: decode)
      }
      let origin = state.origin ?? .zero
      let shown = Self.ticks(presentation &- origin, Self.videoTimescale)
      let time = max(Self.ticks(decode &- origin, Self.videoTimescale), state.lastDecode + 1)
      state.lastDecode = time
      publication.give(
        .sample(
          Sample(
            track: .video, decodeTime: time, compositionOffset: Int32(clamping: shown &- time), isSync: isSync,
            isDisposable: isDisposable, payload: payload)))
      release(&state, until: decode &+ Self.longestLead)
    }
  }

  /// Takes a coded audio frame that begins `samples` after `start`.
  func audio(start: MonotonicTime, samples: Int64, duration: UInt32, payload: ByteBuffer) {
    state.withLock { state in
      guard let track = state.audio else { return }
      let time = start &+ MediaTime(ticks: samples, timescale: track.timescale).nanoseconds
      let frame = HeldAudio(start: start, samples: samples, duration: duration, payload: payload, time: time)
      guard wantsVideo else {
        if state.origin == nil { begin(&state, at: time) }
        return give(frame, track, &state)
      }
      state.held.append(frame)
      guard let origin = state.origin else {
        // Audio older than any possible first frame is dropped.
        let oldest = time &- Self.longestHold
        if let first = state.held.first, first.time < oldest { state.held.removeAll { $0.time < oldest } }
        return
      }
      let lastVideo = origin &+ MediaTime(ticks: max(0, state.lastDecode), timescale: Self.videoTimescale).nanoseconds
      release(&state, until: max(lastVideo &+ Self.longestLead, time &- Self.longestHold))
    }
  }

  /// Ends the video and outputs the audio that waits for it.
  func finish() {
    state.withLock { state in
      if state.origin != nil { release(&state, until: .max) }
      state.held = []
    }
  }

  private func release(_ state: inout State, until time: MonotonicTime) {
    guard let track = state.audio else { return }
    let count = state.held.firstIndex { $0.time > time } ?? state.held.count
    for frame in state.held[..<count] { give(frame, track, &state) }
    state.held.removeFirst(count)
  }

  private func give(_ frame: HeldAudio, _ track: TrackDescription, _ state: inout State) {
    let time = Self.ticks(frame.start &- (state.origin ?? .zero), track.timescale) &+ frame.samples
    guard time >= 0, time > state.lastAudio else { return }
    state.lastAudio = time
    publication.give(
      .sample(
        Sample(track: .audio, decodeTime: time, duration: frame.duration, isSync: true, payload: frame.payload)))
  }

  private func begin(_ state: inout State, at origin: MonotonicTime) {
    state.origin = origin
    publication.give(.clock(WallClockAnchor(mediaTime: .zero, wallTime: reading.wallTime(at: origin))))
    publication.give(.tracks([state.video, state.audio].compactMap(\.self)))
  }

  private static func ticks(_ nanoseconds: Int64, _ timescale: UInt32) -> Int64 {
    MediaTime(nanoseconds: nanoseconds).rescaled(to: timescale)
  }
}
