package import FMP4
package import NIOCore
package import Streams

/// The multivariant playlist (RFC 8216bis §4.4.6) at the stable address of a stream. It refers to the media playlists of the
/// current epoch. Bandwidths are measured.
package struct HLSMultivariantPlaylist {
  package let epoch: EpochView
  package var layout = StreamSettings.HLSLayout.interleaved
  /// The name of the media playlists.
  var mediaPlaylist = MediaName.playlist
  /// How far back the playlist of the whole programme reaches. Nil when there is no such playlist.
  var rewind: MediaTime?
  /// What the addresses of media playlists end with.
  var query = ""
  /// The number of the video that is shown. Nil for the first one, with those that players may switch to.
  package var video: Int?

  package init(
    epoch: EpochView, layout: StreamSettings.HLSLayout = .interleaved,
    mediaPlaylist: String = MediaName.playlist, rewind: MediaTime? = nil, query: String = "", video: Int? = nil
  ) {
    (self.epoch, self.layout, self.mediaPlaylist, self.rewind, self.query) = (
      epoch, layout, mediaPlaylist, rewind, query
    )
    self.video = video
  }

  private var window: LiveWindow { epoch.window }

  package func render() -> ByteBuffer {
    let tracks = window.currentInit?.tracks ?? []
    let videos = video.map { number in tracks.track(.video, number).map { [$0] } ?? [] } ?? switchable
    let audios = tracks.filter { $0.kind == .audio }
    var out = ByteBuffer()
    out.writeString("#EXTM3U\n#EXT-X-VERSION:\(captions.version)\n")
    if window.isIndependent { out.writeStaticString("#EXT-X-INDEPENDENT-SEGMENTS\n") }
    if let rewind {
      // §4.4.6.4.
      out.writeString("#EXT-X-SESSION-DATA:DATA-ID=\"weir.rewind\",VALUE=\"\(rewind.rescaled(to: 1))\"\n")
    }
    var groups = HLSAudioGroup.groups(of: audios, named: epoch.presentation.audioNames) {
      window.bandwidth.peakOfTrack[$0.id] ?? 0
    }
    // One group for each codec: players skip variants with codecs that they do not support (§4.4.6.2.1).
    if mediaPlaylist == MediaName.playlist {
      groups += epoch.playableAudio.compactMap { rung in
        rung.currentTrack.map { track in
          HLSAudioGroup(
            id: rung.name,
            members: [
              HLSAudioGroup.Member(
                track: track, rendition: rung.rendition,
                name: epoch.presentation.audioNames[track] ?? HLSAudioGroup.name(of: track), isDefault: true)
            ],
            peak: rate(of: rung.window).peak)
        }
      }
    }
    let hasGroups = layout == .separate && (videos.isEmpty ? audios.count > 1 : !audios.isEmpty)
    if hasGroups {
      for group in groups { group.write({ "\(address($0))/\(mediaPlaylist)\(query)" }, &out) }
    }
    captions.write(&out)
    let choices = groups.isEmpty ? [nil] : groups.map(Optional.init)
    for group in choices { writeVariants(videos, group, named: hasGroups, &out) }
    // Key frames are listed for the window only.
    if video == nil, let first = videos.first, mediaPlaylist == MediaName.playlist {
      writeKeyFrames(first, Rendition(first), window, &out)
    }
    for rung in rungs {
      if let track = rung.currentTrack { writeKeyFrames(track, rung.rendition, rung.window, &out) }
    }
    return out
  }

  /// Those of the video that is shown.
  private var captions: CaptionLines {
    let tracks = window.currentInit?.tracks ?? []
    return CaptionLines(
      window.captions, of: video.map { tracks.track(.video, $0) } ?? tracks.first(.video))
  }

  /// The videos that players choose from.
  private var switchable: [TrackDescription] {
    layout == .separate
      ? window.switchableVideos : (window.currentInit?.tracks.first(.video)).map { [$0] } ?? []
  }

  /// Writes all variants of the video with one group of audio, or that audio alone. `named`: the group is written.
  private func writeVariants(
    _ videos: [TrackDescription], _ group: HLSAudioGroup?, named: Bool, _ out: inout ByteBuffer
  ) {
    let audioCodec = group.map { [$0.codecString] } ?? []
    let name = named ? group?.id : nil
    guard let first = videos.first else {
      guard let audio = group?.members.first else { return }
      let own = epoch.window(of: audio.rendition) ?? window
      let address = address(layout == .separate ? audio.rendition : .interleaved)
      return writeVariant(nil, address, rate(of: own), audioCodec, group: name, &out)
    }
    for video in videos {
      let rendition = layout == .separate ? Rendition(video) : .interleaved
      writeVariant(
        video, address(rendition), rate(of: video, with: group), [video.codec.codecString] + audioCodec, group: name,
        &out)
    }
    guard Rendition(first) == .video else { return }
    for rung in rungs {
      guard let track = rung.currentTrack else { continue }
      // The measured rate of the source includes its audio; that of a rung does not.
      writeVariant(
        track, address(rung.rendition), rate(of: rung.window, with: group?.peak ?? 0),
        [track.codec.codecString] + audioCodec, group: name, &out)
    }
  }

  /// The rate of a video with a group of audio: with the largest of its members.
  private func rate(of video: TrackDescription, with group: HLSAudioGroup?) -> (peak: Int, average: Int) {
    let tracks = window.currentInit?.tracks ?? []
    let audio = group?.peak ?? 0
    if video.id == tracks.first(.video)?.id {
      // The measured rate includes the first audio.
      let own = tracks.first(.audio).flatMap { window.bandwidth.peakOfTrack[$0.id] } ?? 0
      return rate(of: window, with: audio - own)
    }
    let (peak, average) = (window.bandwidth.peakOfTrack[video.id] ?? 0, window.bandwidth.average(of: video.id))
    return (max(peak + audio, 1), max(average + audio, 1))
  }

  /// The programme on disk has no rungs.
  private var rungs: [TranscodedRendition] {
    mediaPlaylist == MediaName.playlist && video == nil ? epoch.playableRungs : []
  }

  /// Bits per second. Before the first complete segment its parts are measured. That is too high, because they begin with a
  /// key frame.
  private func rate(of window: LiveWindow, with audio: Int = 0) -> (peak: Int, average: Int) {
    let peak = window.bandwidth.peak > 0 ? window.bandwidth.peak : window.bitrateOfNewest
    let average = window.bandwidth.peak > 0 ? window.bandwidth.average : peak
    return (max(peak + audio, 1), max(average + audio, 1))
  }

  private func writeVariant(
    _ video: TrackDescription?, _ address: String, _ rate: (peak: Int, average: Int), _ codecs: [String],
    group: String?, _ out: inout ByteBuffer
  ) {
    var attributes = ["BANDWIDTH=\(rate.peak)", "AVERAGE-BANDWIDTH=\(rate.average)"]
    attributes.append("CODECS=\"\(codecs.joined(separator: ","))\"")
    if let video { attributes += videoAttributes(video) + captions.attribute }
    if let group { attributes.append("AUDIO=\"\(group)\"") }
    out.writeString("#EXT-X-STREAM-INF:\(attributes.joined(separator: ","))\n")
    out.writeString("\(address)/\(mediaPlaylist)\(query)\n")
  }

  private func address(_ rendition: Rendition) -> String { epoch.prefix + rendition.rawValue }

  private func videoAttributes(_ video: TrackDescription) -> [String] {
    var attributes: [String] = []
    if let size = video.codec.displaySize { attributes.append("RESOLUTION=\(size.width)x\(size.height)") }
    if let rate = video.frameRate { attributes.append("FRAME-RATE=\(Decimals.scaled(Int64(rate), digits: 3))") }
    return attributes + video.videoRange
  }

  private func writeKeyFrames(
    _ video: TrackDescription, _ rendition: Rendition, _ window: LiveWindow, _ out: inout ByteBuffer
  ) {
    guard window.bandwidth.keyFramePeak > 0 else { return }
    var attributes = [
      "BANDWIDTH=\(window.bandwidth.keyFramePeak)", "CODECS=\"\(video.codec.codecString)\"",
    ]
    if let size = video.codec.displaySize { attributes.append("RESOLUTION=\(size.width)x\(size.height)") }
    attributes += video.videoRange
    attributes.append("URI=\"\(address(rendition))/\(MediaName.keyFrames)\"")
    out.writeString("#EXT-X-I-FRAME-STREAM-INF:\(attributes.joined(separator: ","))\n")
  }
}

extension TrackDescription {
  /// From the transfer characteristics (ITU-T H.273 table 3). When they are absent, players assume SDR (§4.4.6.2).
  fileprivate var videoRange: [String] {
    switch color?.transfer {
    case 16?: ["VIDEO-RANGE=PQ"]
    case 18?: ["VIDEO-RANGE=HLG"]
    default: []
    }
  }
}
