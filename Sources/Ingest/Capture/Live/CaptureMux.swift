internal import FMP4
internal import NIOCore
internal import Synchronization

/// Where pictures and sound of one capture meet: waits for the first key frame, lays both on one timeline that begins
/// with it, and gives them to the publication. Threads call it one at a time.
final class CaptureMux: CodedPictureSink {
  /// Ticks a second of the picture; cameras' times are kept, not laid on a grid.
  static let videoTimescale: UInt32 = 90_000

  private struct State {
    var video: TrackDescription?
    var audio: TrackDescription?
    /// Nanoseconds on the monotonic clock that are media time 0.
    var origin: Int64?
    var lastDecode: Int64 = -1
    var lastSound: Int64 = -1
    var pictures: Int64 = 0
  }

  private let publication: OwnPublication
  private let wallOffset: Int64
  private let wantsVideo: Bool
  private let wantsAudio: Bool
  private let state = Mutex(State())

  init(_ publication: OwnPublication, wallOffset: Int64, wantsVideo: Bool, wantsAudio: Bool) {
    self.publication = publication
    self.wallOffset = wallOffset
    self.wantsVideo = wantsVideo
    self.wantsAudio = wantsAudio
  }

  /// What the picture is from here on.
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

  /// A coded picture. `presentation` and `decode` are nanoseconds on the monotonic clock.
  func picture(presentation: Int64, decode: Int64, isSync: Bool, isDisposable: Bool, payload: ByteBuffer) {
    state.withLock { state in
      guard !wantsAudio || state.audio != nil else { return }
      if state.origin == nil {
        guard isSync else { return }
        begin(&state, at: decode)
      }
      let origin = state.origin ?? 0
      let shown = Self.ticks(presentation &- origin, Self.videoTimescale)
      let time = max(Self.ticks(decode &- origin, Self.videoTimescale), state.lastDecode + 1)
      state.lastDecode = time
      state.pictures += 1
      publication.give(
        .sample(
          Sample(
            track: .video, decodeTime: time, compositionOffset: Int32(clamping: shown &- time), isSync: isSync,
            isDisposable: isDisposable, payload: payload)))
    }
  }

  /// A coded frame of sound that begins `samples` after `start`, which is on the monotonic clock.
  func sound(start: Int64, samples: Int64, duration: UInt32, payload: ByteBuffer) {
    state.withLock { state in
      guard let track = state.audio else { return }
      if state.origin == nil {
        guard !wantsVideo else { return }
        begin(&state, at: start &+ MediaTime(ticks: samples, timescale: track.timescale).nanoseconds)
      }
      let time = Self.ticks(start &- (state.origin ?? 0), track.timescale) &+ samples
      guard time >= 0, time > state.lastSound else { return }
      state.lastSound = time
      publication.give(
        .sample(Sample(track: .audio, decodeTime: time, duration: duration, isSync: true, payload: payload)))
    }
  }

  private func begin(_ state: inout State, at origin: Int64) {
    state.origin = origin
    publication.give(.clock(WallClockAnchor(mediaTime: .zero, wallNanoseconds: origin &+ wallOffset)))
    publication.give(.tracks([state.video, state.audio].compactMap(\.self)))
  }

  private static func ticks(_ nanoseconds: Int64, _ timescale: UInt32) -> Int64 {
    MediaTime(nanoseconds: nanoseconds).rescaled(to: timescale)
  }
}
