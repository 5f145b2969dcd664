internal import FMP4
internal import Ingest
internal import NIOCore
internal import Synchronization

/// The door that one of the server's own sources publishes through. On air, its events go on to the registry; off air they
/// stay here, and of them the newest key frame for a preview: the source captures and codes, and nobody is offered anything.
/// It is taken off the air and put on it while it runs, without its devices hearing of it: what viewers see begins with a key
/// frame, as a publication of its own.
final class Airing: PublishGate, MediaSink {
  /// A picture that decoding can begin with.
  struct KeyFrame: Sendable {
    let sample: ByteBuffer
    let track: TrackDescription
    /// Grows with each one.
    let number: Int
  }

  private enum Phase {
    case offAir
    /// Admitted; begins with the next key frame.
    case beginning(any MediaSink)
    /// What lies before `start` is not published, and `start` is 0 to the sink; nil where all is.
    case onAir(any MediaSink, start: MediaTime?)
  }

  private struct State {
    var isWanted = true
    var phase = Phase.offAir
    /// Of the source's run, where it runs.
    var request: PublishRequest?
    var tracks: [TrackDescription] = []
    var anchor: WallClockAnchor?
    var keyFrame: KeyFrame?
    var keyFrames = 0
  }

  private let gate: any PublishGate
  private let state = Mutex(State())

  /// - Parameter gate: where what is on air goes.
  init(gate: any PublishGate) { self.gate = gate }

  /// It is meant to be on air, whether it runs or not.
  var isOnAir: Bool { state.withLock { $0.isWanted } }

  /// The newest key frame of what runs.
  var keyFrame: KeyFrame? { state.withLock { $0.keyFrame } }

  // MARK: On air and off

  /// Puts what runs on the air, with its next key frame, and what will run with its first. Returns why it cannot be.
  func begin() async -> PublishRefusal? {
    let request = state.withLock { state -> PublishRequest? in
      state.isWanted = true
      if case .offAir = state.phase { return state.request }
      return nil
    }
    guard let request else { return nil }
    let sink: any MediaSink
    do throws(PublishRefusal) {
      sink = try await gate.admit(request)
    } catch {
      state.withLock { $0.isWanted = false }
      return error
    }
    let isIn = state.withLock { state in
      // It may have ended, or have been taken off the air, or put on it, meanwhile.
      guard state.isWanted, state.request != nil, case .offAir = state.phase else { return false }
      state.phase = .beginning(sink)
      return true
    }
    if isIn { request.onKeyFrameWanted?() } else { _ = sink.receive(.end(.finished)) }
    return nil
  }

  /// Takes what runs off the air: its stream ends as with a publisher that says so, its devices go on.
  func end() {
    let sink = state.withLock { state -> (any MediaSink)? in
      state.isWanted = false
      defer { state.phase = .offAir }
      switch state.phase {
      case .offAir: return nil
      case .beginning(let sink), .onAir(let sink, _): return sink
      }
    }
    _ = sink?.receive(.end(.finished))
  }

  /// The source's run is over, however it ended.
  func finishRun() {
    state.withLock { state in
      (state.request, state.keyFrame) = (nil, nil)
      state.phase = .offAir
    }
  }

  // MARK: The source's side

  func admit(_ request: PublishRequest) async throws(PublishRefusal) -> any MediaSink {
    let isWanted = state.withLock { state in
      state = State(isWanted: state.isWanted, request: request, keyFrames: state.keyFrames)
      return state.isWanted
    }
    guard isWanted else { return self }
    do throws(PublishRefusal) {
      let sink = try await gate.admit(request)
      let isIn = state.withLock { state in
        guard state.isWanted else { return false }
        state.phase = .onAir(sink, start: nil)
        return true
      }
      if !isIn { _ = sink.receive(.end(.finished)) }
    } catch {
      state.withLock { $0.request = nil }
      throw error
    }
    return self
  }

  func receive(_ event: MediaEvent) -> SinkVerdict {
    state.withLock { state in
      note(event, &state)
      switch state.phase {
      case .offAir: return .accepted
      case .beginning(let sink):
        guard case .sample(let sample) = event, let start = beginning(with: sample, state.tracks) else {
          if case .end = event { return sink.receive(event) }
          return .accepted
        }
        state.phase = .onAir(sink, start: start)
        if let anchor = state.anchor {
          let wall = anchor.wallNanoseconds(at: start)
          _ = sink.receive(.clock(WallClockAnchor(mediaTime: .zero, wallNanoseconds: wall)))
        }
        _ = sink.receive(.tracks(state.tracks))
        return give(event, to: sink, start: start, state.tracks)
      case .onAir(let sink, let start): return give(event, to: sink, start: start, state.tracks)
      }
    }
  }

  func lost(_ kind: MediaKind) { sink?.lost(kind) }
  func warn(_ warning: PublicationWarning) { sink?.warn(warning) }
  func withdraw(_ warning: PublicationWarning) { sink?.withdraw(warning) }

  private var sink: (any MediaSink)? {
    state.withLock { state in
      if case .onAir(let sink, _) = state.phase { sink } else { nil }
    }
  }

  private func note(_ event: MediaEvent, _ state: inout State) {
    switch event {
    case .tracks(let tracks): state.tracks = tracks
    case .clock(let anchor): state.anchor = anchor
    case .sample(let sample):
      guard sample.isSync, let track = state.tracks.first(where: { $0.id == sample.track }), track.kind == .video
      else { return }
      state.keyFrames += 1
      state.keyFrame = KeyFrame(sample: sample.payload, track: track, number: state.keyFrames)
    case .progress, .discontinuity, .end: break
    }
  }

  /// Where what is published begins, if it can begin with this sample: a key frame, or sound where there is no picture.
  private func beginning(with sample: Sample, _ tracks: [TrackDescription]) -> MediaTime? {
    guard let track = tracks.first(where: { $0.id == sample.track }), sample.isSync,
      track.kind == .video || !tracks.contains(where: { $0.kind == .video })
    else { return nil }
    return MediaTime(ticks: sample.decodeTime, timescale: track.timescale)
  }

  private func give(
    _ event: MediaEvent, to sink: any MediaSink, start: MediaTime?, _ tracks: [TrackDescription]
  ) -> SinkVerdict {
    guard let start else { return sink.receive(event) }
    switch event {
    case .sample(var sample):
      let timescale = tracks.first { $0.id == sample.track }?.timescale ?? start.timescale
      sample.decodeTime &-= start.rescaled(to: timescale)
      // Sound of before the picture with which it began.
      return sample.decodeTime < 0 ? .accepted : sink.receive(.sample(sample))
    case .progress(let time): return sink.receive(.progress(time - start))
    case .clock(let anchor):
      let time = anchor.mediaTime - start
      return sink.receive(.clock(WallClockAnchor(mediaTime: time, wallNanoseconds: anchor.wallNanoseconds)))
    case .tracks, .discontinuity, .end: return sink.receive(event)
    }
  }
}
