internal import Base
internal import FMP4
internal import Logging
internal import NIOCore
internal import Publishing

/// Frames of video.
extension WebRTCPublication {
  /// The longest step back of a frame that is reordered, in ticks of 90 kHz: half a second.
  private static let farthestReorder: Int32 = -45_000

  mutating func receive(
    _ frame: RTPFrame, _ track: Negotiation.Track, _ now: MonotonicTime, to out: inout [PublicationAction]
  ) throws(WireError) {
    var video = videos[track.id] ?? Video()
    defer { videos[track.id] = video }
    if let fault = track.coding.type.fault(inFrame: frame.payload) {
      video.isBroken = true
      guard let id = published(track) else { return }
      return publication.leaveOut(unreadable: fault, track.coding, id, now: now, to: &out)
    }
    if video.firstAsked != nil {
      video.unanswered = (video.unanswered?.since ?? now, (video.unanswered?.count ?? 0) + 1)
    }
    read(frame, track, &video, now, to: &out)
    guard let place = place(of: frame, track, video.codec, now, to: &out) else {
      // Requests for key frames go by those that come, of an encoding that the stream has by those that it gets.
      if frame.isKey, !isIn(track) { video.noteKeyFrame(now) }
      // What begins an encoding did not come, so its size is not known.
      if frame.payload.readableBytes > 0, video.codec == nil, video.refusal == nil { video.isBroken = true }
      return
    }
    if video.isNew, let codec = video.codec, track.rid == nil || frame.isKey {
      video.isNew = false
      let record = ByteBuffer(bytes: codec.record())
      video.isConfigured = try publication.configure(place.track, track.coding, record: record, now: now, to: &out)
    }
    guard frame.payload.readableBytes > 0 else { return }
    guard video.isConfigured else {
      // What begins it did not come. One whose codec is known is left out for another reason, which was told.
      guard video.codec == nil, video.refusal == nil else { return }
      video.isBroken = true
      return out.append(.lost(.video))
    }
    if let last = video.lastTimestamp, (Self.farthestReorder...0).contains(Int32(bitPattern: frame.timestamp &- last)) {
      // Reordered frames have no decode times in RTP. A longer step back is a wrong time before it, or a jump.
      return out.append(.lost(.video))
    }
    video.lastTimestamp = frame.timestamp
    if frame.isKey {
      video.noteKeyFrame(now)
      publication.canRead(place.track, to: &out)
      if video.isTold, !videos.contains(where: { $0 != track.id && $1.isTold }) {
        out.append(.withdraw(.ignoresRequests))
      }
      video.isTold = false
    }
    let time = place.time ?? clocks.time(track.id, .video, frame.timestamp, hertz: track.format.clock, now: now)
    publication.receive(
      WireUnit(track: place.track, coding: track.coding, time: time, payload: frame.payload), now: now, to: &out)
  }

  /// No other video is left that may be readable.
  private func isLastReadable(_ track: Negotiation.Track) -> Bool {
    negotiation.tracks.allSatisfy { $0.kind != .video || $0.id == track.id || videos[$0.id]?.refusal != nil }
  }

  /// Takes a configuration that begins with the frame. Parameter sets that say the same again are none.
  private mutating func read(
    _ frame: RTPFrame, _ track: Negotiation.Track, _ video: inout Video, _ now: MonotonicTime,
    to out: inout [PublicationAction]
  ) {
    do {
      if track.coding.type.hasNALUnits {
        var parameters = video.parameters.take() ?? VideoParameterSets(track.coding)
        defer { video.parameters = parameters }
        guard try parameters.receive(frame.parameterSets), let codec = parameters.codec else { return }
        (video.codec, video.isNew) = (codec, true)
      } else if frame.isKey, !video.isConfigured {
        (video.codec, video.isNew) = (try Codec(track.coding, stream: frame.payload), true)
      }
    } catch {
      if video.refusal != error.reason {
        publication.leaveOut(
          codec: "\(track.coding.name) (\(PeerText.printable(error.reason, limit: 200)))", of: .video,
          published(track), isAlone: isLastReadable(track), now: now, to: &out)
      }
      video.refusal = error.reason
    }
  }
}
