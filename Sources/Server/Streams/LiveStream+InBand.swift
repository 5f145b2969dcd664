internal import Base
internal import Control
internal import FMP4
internal import Publishing

/// What publications carry beside their samples.
extension LiveStream {
  func take(_ event: InBandEvent, from token: PublicationToken) {
    state.withLock { state in
      guard state.publisher.holder?.token == token else { return }
      switch event {
      case .content(let content): state.publisher.carries(content)
      case .early(let kind):
        state.publisher.countEarly(kind)
        // Where the stream has begun already, a recording tells of it.
        if state.life.epoch.isContinued { state.life.epoch.lost.count(kind) }
      case .mendedTime(let kind): state.publisher.countMended(kind)
      case .correctedAudio: state.publisher.counters.intake.audioCorrections &+= 1
      case .keyFrameDistance(let distance):
        // Does nothing where the name had a publisher before: what that one kept to has decided the target.
        state.life.epoch.foresee(group: distance)
        change(state.life)
      case .captions(let track, let services):
        if state.life.epoch.note(services, of: track) { stamp.change() }
      case .cue(var cue):
        cue.mediaTime = state.life.epoch.shift(cue.mediaTime)
        let epoch = state.life.epoch
        let told = StreamCues.Told(cue: cue, epoch: epoch.id, wall: epoch.anchor?.wallTime(at: cue.mediaTime))
        if state.cues.add(told) { events?.tell(.streamCue, of: name.description, EventValue(told)) }
      }
    }
  }
}

extension EventValue {
  /// As the API tells it.
  fileprivate init(_ told: StreamCues.Told) {
    let cue = told.cue
    self = [
      "epoch": .text(told.epoch), "mediaSeconds": .number(cue.mediaTime.thousandths),
      "wall": .text(orNull: told.wall.map { UTCText($0).internet }), "pid": .whole(Int64(cue.pid)),
      "command": .text(cue.command.name), "eventID": .whole(orNull: cue.eventID.map(Int64.init)),
      "cancelled": .flag(cue.isCancelled), "outOfNetwork": cue.isOutOfNetwork.map(EventValue.flag) ?? .null,
      "segmentationType": .whole(orNull: cue.segmentationType.map(Int64.init)),
      "duration": .whole(orNull: cue.duration.map { Int64(clamping: $0) }),
      "pts": .whole(orNull: cue.presentation.map { Int64(clamping: $0) }), "immediate": .flag(cue.isImmediate),
      "section": cue.sectionText.map(EventValue.encoded) ?? .null,
    ]
  }
}
