internal import Base
internal import FMP4
internal import Logging
internal import NIOCore
internal import Publishing

/// Encodings of one picture: where their frames go, and when they come and go.
extension WebRTCPublication {
  /// A track of the stream, and a time in nanoseconds; nil where the track has a clock of its own.
  struct FramePlace {
    var track: TrackID
    var time: Int64?
  }

  /// How long audio is left out for pictures of which nothing comes, in nanoseconds.
  static let audioWait: Int64 = 4_000_000_000

  /// The simulcast that a track of the offer belongs to.
  func simulcast(of id: TrackID) -> Int? { simulcasts.firstIndex { $0.members.contains(id) } }

  /// The track of the stream that one of the offer is; nil while it is left out.
  func published(_ track: Negotiation.Track) -> TrackID? {
    simulcast(of: track.id).map { simulcasts[$0].track(of: track.id) } ?? track.id
  }

  func isIn(_ track: Negotiation.Track) -> Bool { published(track) != nil }

  /// Where a frame goes. Nil for one of an encoding that the stream does not have now.
  mutating func place(
    of frame: RTPFrame, _ track: Negotiation.Track, _ codec: Codec?, _ now: MonotonicTime,
    to out: inout [PublicationAction]
  ) -> FramePlace? {
    guard let index = simulcast(of: track.id) else { return FramePlace(track: track.id) }
    guard frame.payload.readableBytes > 0 else { return nil }
    let size = codec?.displaySize
    simulcasts[index].clocks.saw(track.id, frame.timestamp, now)
    simulcasts[index].saw(track.id, pixels: size.map { $0.width &* $0.height }, now)
    guard let clock = simulcasts[index].members.first,
      let timestamp = simulcasts[index].clocks.common(track.id, frame.timestamp)
    else { return nil }
    // Also before the encoding is in: reports put audio beside a clock that runs.
    let time = clocks.time(clock, .video, timestamp, hertz: track.format.clock, now: now)
    return simulcasts[index].track(of: track.id).map { FramePlace(track: $0, time: time) }
  }

  /// A report of the sender's clocks.
  mutating func receive(_ report: SenderReport, of track: Negotiation.Track, _ now: MonotonicTime) {
    guard let index = simulcast(of: track.id) else {
      return clocks.receive(track.id, wall: report.nanoseconds, timestamp: report.timestamp)
    }
    simulcasts[index].clocks.report(track.id, wall: report.nanoseconds, timestamp: report.timestamp, now)
    guard let clock = simulcasts[index].members.first,
      let timestamp = simulcasts[index].clocks.common(track.id, report.timestamp)
    else { return }
    clocks.receive(clock, wall: report.nanoseconds, timestamp: timestamp)
  }

  /// Another sender has taken an encoding over.
  mutating func beginAgain(_ id: TrackID, in index: Int) {
    videos[id]?.leave()
    simulcasts[index].clocks.forget(id)
    simulcasts[index].forget(id)
    if simulcasts[index].clocks.isEmpty, let clock = simulcasts[index].members.first { clocks.forget(clock) }
  }

  /// The sender of a video ends. Whether nothing of its picture goes on. An encoding leaves the stream as one that has stopped.
  mutating func endsPicture(_ id: TrackID) -> Bool {
    guard let index = simulcast(of: id) else { return true }
    return simulcasts[index].end(id)
  }

  private mutating func leave(_ id: TrackID, in index: Int, to out: inout [PublicationAction]) {
    guard let track = simulcasts[index].leave(id) else { return }
    videos[id]?.leave()
    publication.end(track, to: &out)
    // Those that go on may have to begin anew.
    request(of: simulcasts[index])
    out.append(.log(.info, "the sender has stopped an encoding\(name(of: id)); the others go on"))
  }

  private func name(of id: TrackID) -> String {
    negotiation.tracks.first { $0.id == id }?.rid.map { " (\($0))" } ?? ""
  }

  /// Lets encodings come and go.
  mutating func tendSimulcasts(_ now: MonotonicTime, to out: inout [PublicationAction]) {
    for index in simulcasts.indices {
      for id in simulcasts[index].leaving(now) where hasOthers(than: id, in: simulcasts[index]) {
        leave(id, in: index, to: &out)
      }
      if let id = simulcasts[index].stranded(now), simulcasts[index].clocks.begin(id),
        let clock = simulcasts[index].members.first
      {
        clocks.forget(clock)
      }
      let isFirst = !simulcasts[index].isChosen
      let joining = simulcasts[index].joining(now)
      for id in joining {
        if isFirst, let track = simulcasts[index].track(of: id) { publication.receive(TrackStatement(), of: track) }
        out.append(.log(.info, "an encoding\(name(of: id)) joins"))
      }
      if !joining.isEmpty { request(of: simulcasts[index]) }
    }
  }

  /// The stream has media of another encoding.
  private func hasOthers(than id: TrackID, in simulcast: Simulcast) -> Bool {
    simulcast.members.contains {
      $0 != id && simulcast.track(of: $0) != nil && videos[$0]?.isConfigured == true
    }
  }

  /// Key frames of all encodings are asked for together, so that they are of one picture.
  private mutating func request(of simulcast: Simulcast) {
    for id in simulcast.members { videos[id, default: Video()].isWanted = true }
  }

  /// Audio waits for the choice, as the video does, unless another video runs.
  mutating func holdsAudio(_ now: MonotonicTime) -> Bool {
    guard simulcasts.contains(where: { !$0.isChosen }), !videos.values.contains(where: \.isConfigured) else {
      return false
    }
    audioBegan = audioBegan ?? now
    return audioBegan.map { now &- $0 < Self.audioWait } ?? false
  }
}
