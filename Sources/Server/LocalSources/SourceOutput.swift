internal import Base
package import FMP4
package import NIOCore
package import Publishing

/// The gate through which a local source publishes. On air, its events go on to the registry. Off air, only its newest key frame
/// is kept for previews: the source captures and encodes, but nothing is published. Going on or off air leaves the devices
/// running; each time on air is a publication of its own that begins with a key frame. A recording receives everything, on air
/// and off.
package final class SourceOutput: PublishGate, MediaSink {
  /// A frame with which decoding can begin.
  package struct KeyFrame: Sendable {
    package let sample: ByteBuffer
    package let track: TrackDescription
    /// Increases with each key frame.
    package let number: Int
  }

  private struct State {
    var isWanted = true
    /// The sink on air; nil off air.
    var air: LateJoiningSink?
    var recording: LateJoiningSink?
    /// The film for administrators that is watched.
    var film: LateJoiningSink?
    /// The request of the present run; nil if there is none.
    var request: PublishRequest?
    /// Of what the present run holds while it is not on air.
    var account: (any HeldBytes)?
    var tracks: [TrackDescription] = []
    var anchor: WallClockAnchor?
    /// Closed captions that were found in the run, for sinks that join later.
    var captions: [TrackID: CaptionServices] = [:]
    var keyFrame: KeyFrame?
    var keyFrames = 0

    /// The request with which the run is published. While the source is recorded, its stream is not recorded automatically.
    var publishRequest: PublishRequest? {
      var request = request
      if recording != nil, request?.recording == .asConfigured { request?.recording = .whenAsked }
      return request
    }
  }

  private let gate: any PublishGate
  private let state = RankedMutex(.output, State())

  /// - Parameter gate: where media on air goes.
  init(gate: any PublishGate) { self.gate = gate }

  /// Whether it is to be on air, running or not.
  var isOnAir: Bool { state.withLock { $0.isWanted } }

  /// The newest key frame of the run.
  var keyFrame: KeyFrame? { state.withLock { $0.keyFrame } }

  /// The newest tracks.
  var tracks: [TrackDescription] { state.withLock { $0.tracks } }

  // MARK: On air and off

  /// Puts the run on air with its next key frame, and later runs with their first. Returns the reason if that is refused.
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
      // The run may have ended, or the state may have changed in the meantime.
      guard state.isWanted, state.request != nil, state.air == nil else { return false }
      state.air = .atKeyFrame(sink, state.tracks, state.anchor)
      return true
    }
    if isIn { request.onKeyFrameWanted?() } else { _ = sink.receive(.end(.finished)) }
    return nil
  }

  /// Takes the run off air: its stream ends as finished, its devices go on.
  func end() {
    let sink = state.withLock { state -> (any MediaSink)? in
      state.isWanted = false
      defer { state.air = nil }
      return state.air?.sink
    }
    _ = sink?.receive(.end(.finished))
  }

  /// The run has ended, and its recording and its film with it.
  func finishRun(_ reason: EndReason) {
    let (recording, film) = state.withLock { state in
      (state.request, state.account, state.keyFrame, state.air) = (nil, nil, nil, nil)
      return (state.recording.take(), state.film.take())
    }
    _ = recording?.sink.receive(.end(reason))
    _ = film?.sink.receive(.end(reason))
  }

  // MARK: Recording

  /// Passes everything to a recording, from the next key frame on, until it closes or the run ends.
  func record(_ recording: any MediaSink) {
    let request = state.withLock { state in
      state.recording = .atKeyFrame(recording, state.tracks, state.anchor)
      return state.request
    }
    request?.onKeyFrameWanted?()
  }

  /// Passes nothing more to the recording.
  func leave(_ recording: any MediaSink) {
    state.withLock { state in if state.recording?.sink === recording { state.recording = nil } }
  }

  // MARK: Watching

  /// The film that is watched, or one that `make` makes, which begins with the next key frame. Nil if there is no run.
  func watch(_ make: () -> SourceFilm) -> SourceFilm? {
    let (film, request) = state.withLock { state -> (SourceFilm?, PublishRequest?) in
      guard let request = state.request else { return (nil, nil) }
      if let film = state.film?.sink as? SourceFilm, film.isActive { return (film, nil) }
      let film = make()
      state.film = .atKeyFrame(film, state.tracks, state.anchor)
      return (film, request)
    }
    request?.onKeyFrameWanted?()
    return film
  }

  // MARK: Input from the source

  package func admit(_ request: PublishRequest) async throws(PublishRefusal) -> any MediaSink {
    let account = gate.account(of: request.stream) { request.onEviction(.failed($0)) }
    let published = state.withLock { state in
      state = State(
        isWanted: state.isWanted, recording: state.recording, film: state.film, request: request, account: account,
        keyFrames: state.keyFrames)
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
      state.withLock { ($0.request, $0.account) = (nil, nil) }
      throw error
    }
    return self
  }

  package func receive(_ event: MediaEvent) -> SinkVerdict {
    state.withLock { state in
      note(event, &state)
      let begun = (air: state.air?.hasBegun, recording: state.recording?.hasBegun)
      if case .closed? = state.recording?.give(event) { state.recording = nil }
      if case .closed? = state.film?.give(event) { state.film = nil }
      let verdict = state.air?.give(event) ?? .accepted
      if begun.air == false { Self.tellCaptions(state.captions, to: state.air) }
      if begun.recording == false { Self.tellCaptions(state.captions, to: state.recording) }
      // A source whose sender is away asks again when it is back.
      if case .end = event {
        (state.request, state.account, state.recording) = (nil, nil, nil)
        (state.air, state.keyFrame) = (nil, nil)
      }
      return verdict
    }
  }

  package func account(of stream: StreamName, end: @escaping @Sendable (_ reason: String) -> Void) -> (any HeldBytes)? {
    gate.account(of: stream, end: end)
  }

  package func note(_ refused: RefusedPublication) { gate.note(refused) }

  package func lost(_ kind: MediaKind) { sink?.lost(kind) }
  package func warn(_ warning: PublicationWarning) { sink?.warn(warning) }
  package func withdraw(_ warning: PublicationWarning) { sink?.withdraw(warning) }
  package func measured(_ figures: LinkFigures) { sink?.measured(figures) }

  package var mostHeldAtStart: Int { sink?.mostHeldAtStart ?? state.withLock { $0.account }?.mostAtStart ?? .max }

  package func holds(_ bytes: Int) {
    let sink = sink
    sink?.holds(bytes)
    state.withLock { $0.account }?.hold(sink == nil ? bytes : 0)
  }

  package func carries(_ event: InBandEvent) {
    let recording = state.withLock { state in
      if case .captions(let track, let services) = event { state.captions[track] = services }
      return state.recording?.hasBegun == true ? state.recording?.sink : nil
    }
    recording?.carries(event)
    sink?.carries(event)
  }

  private static func tellCaptions(_ captions: [TrackID: CaptionServices], to sink: LateJoiningSink?) {
    guard let sink, sink.hasBegun else { return }
    for (track, services) in captions { sink.sink.carries(.captions(track, services)) }
  }

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
