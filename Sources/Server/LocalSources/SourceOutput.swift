internal import Basics
internal import FMP4
internal import Ingest
internal import NIOCore

/// The door that one of the server's own sources publishes through. On air, its events go on to the registry; off air they
/// stay here, and of them the newest key frame for a preview: the source captures and codes, and nobody is offered anything.
/// It is taken off the air and put on it while it runs, without its devices hearing of it: what viewers see begins with a key
/// frame, as a publication of its own. A recording of it hears all of it, on air and off.
final class SourceOutput: PublishGate, MediaSink {
  /// A picture that decoding can begin with.
  struct KeyFrame: Sendable {
    let sample: ByteBuffer
    let track: TrackDescription
    /// Grows with each one.
    let number: Int
  }

  private struct State {
    var isWanted = true
    /// Where what is on air goes; nil off air.
    var air: LateJoiningSink?
    var take: LateJoiningSink?
    /// Of the source's run, where it runs.
    var request: PublishRequest?
    var tracks: [TrackDescription] = []
    var anchor: WallClockAnchor?
    var keyFrame: KeyFrame?
    var keyFrames = 0

    /// With which what runs is published. What is being recorded is not recorded once more with its stream.
    var publishRequest: PublishRequest? {
      var request = request
      if take != nil, request?.recording == .asConfigured { request?.recording = .whenAsked }
      return request
    }
  }

  private let gate: any PublishGate
  private let state = RankedMutex(.output, State())

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
      return state.air == nil ? state.publishRequest : nil
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
      guard state.isWanted, state.request != nil, state.air == nil else { return false }
      state.air = .atKeyFrame(sink)
      return true
    }
    if isIn { request.onKeyFrameWanted?() } else { _ = sink.receive(.end(.finished)) }
    return nil
  }

  /// Takes what runs off the air: its stream ends as with a publisher that says so, its devices go on.
  func end() {
    let sink = state.withLock { state -> (any MediaSink)? in
      state.isWanted = false
      defer { state.air = nil }
      return state.air?.sink
    }
    _ = sink?.receive(.end(.finished))
  }

  /// The source's run is over, and its recording with it.
  func finishRun(_ reason: EndReason) {
    let take = state.withLock { state in
      (state.request, state.keyFrame, state.air) = (nil, nil, nil)
      return state.take.take()
    }
    _ = take?.sink.receive(.end(reason))
  }

  // MARK: Recording

  /// Gives a recording all that comes, from the next key frame on, until it closes or the run is over.
  func record(_ take: any MediaSink) {
    let request = state.withLock { state in
      state.take = .atKeyFrame(take)
      return state.request
    }
    request?.onKeyFrameWanted?()
  }

  /// The recording hears no more.
  func leave(_ take: any MediaSink) {
    state.withLock { state in if state.take?.sink === take { state.take = nil } }
  }

  // MARK: The source's side

  func admit(_ request: PublishRequest) async throws(PublishRefusal) -> any MediaSink {
    let published = state.withLock { state in
      state = State(isWanted: state.isWanted, take: state.take, request: request, keyFrames: state.keyFrames)
      return state.isWanted ? state.publishRequest : nil
    }
    guard let published else { return self }
    do throws(PublishRefusal) {
      let sink = try await gate.admit(published)
      let isIn = state.withLock { state in
        guard state.isWanted else { return false }
        state.air = .atFirst(sink)
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
      if case .closed? = state.take?.give(event, state.tracks, state.anchor) { state.take = nil }
      return state.air?.give(event, state.tracks, state.anchor) ?? .accepted
    }
  }

  func lost(_ kind: MediaKind) { sink?.lost(kind) }
  func warn(_ warning: PublicationWarning) { sink?.warn(warning) }
  func withdraw(_ warning: PublicationWarning) { sink?.withdraw(warning) }

  private var sink: (any MediaSink)? {
    state.withLock { state in state.air?.hasBegun == true ? state.air?.sink : nil }
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
}
