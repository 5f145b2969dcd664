internal import FMP4
internal import NIOCore

/// The multivariant playlist (RFC 8216bis §4.4.6) at the stable address of a stream. It refers to the media playlists of the
/// current epoch. Bandwidths are measured.
struct HLSMultivariantPlaylist {
  let epoch: EpochView
  var layout = StreamSettings.HLSLayout.interleaved
  /// The name of the media playlists.
  var mediaPlaylist = MediaName.playlist
  /// How far back the playlist of the whole programme reaches. Nil when there is no such playlist.
  var rewind: MediaTime?

  private var window: LiveWindow { epoch.window }

  func render() -> ByteBuffer {
    let tracks = window.currentInit?.tracks ?? []
    let video = tracks.first(.video)
    let audio = tracks.first(.audio)
    var out = ByteBuffer()
    out.writeStaticString("#EXTM3U\n#EXT-X-VERSION:6\n")
    if window.isIndependent { out.writeStaticString("#EXT-X-INDEPENDENT-SEGMENTS\n") }
    if let rewind {
      // §4.4.6.4.
      out.writeString("#EXT-X-SESSION-DATA:DATA-ID=\"weir.rewind\",VALUE=\"\(rewind.rescaled(to: 1))\"\n")
    }
    var audioTracks: [Audio?] = [
      audio.map { Audio(track: $0, rendition: .audio, group: "audio", peak: window.bandwidth.peakOfTrack[$0.id] ?? 0) }
    ]
    // One group for each codec: players skip variants with codecs that they do not support (§4.4.6.2.1).
    if mediaPlaylist == MediaName.playlist {
      audioTracks += epoch.playableAudio.compactMap { rung in
        rung.currentTrack.map {
          Audio(track: $0, rendition: rung.rendition, group: rung.name, peak: rate(of: rung.window).peak)
        }
      }
    }
    let hasGroup = layout == .separate && video != nil && audio != nil
    if hasGroup { for case let audio? in audioTracks { writeGroup(audio, &out) } }
    for each in audioTracks {
      writeVariants(video, source: audioTracks[0], each, group: hasGroup ? each?.group : nil, &out)
    }
    // Key frames are listed for the window only.
    if let video, mediaPlaylist == MediaName.playlist { writeKeyFrames(video, .video, window, &out) }
    for rung in rungs {
      if let track = rung.currentTrack { writeKeyFrames(track, rung.rendition, rung.window, &out) }
    }
    return out
  }

  /// An audio rendition that is combined with the video.
  private struct Audio {
    var track: TrackDescription
    var rendition: Rendition
    var group: String
    /// Bits per second.
    var peak: Int
  }

  /// Writes all video variants with one audio rendition, or that audio alone. `source`: the audio whose rate is included in the
  /// measured rate of the source.
  private func writeVariants(
    _ video: TrackDescription?, source: Audio?, _ audio: Audio?, group: String?, _ out: inout ByteBuffer
  ) {
    let audioCodec = audio.map { [$0.track.codec.codecString] } ?? []
    guard let video else {
      guard let audio else { return }
      let own = epoch.window(of: audio.rendition) ?? window
      return writeVariant(nil, address(main(video: nil, audio)), rate(of: own), audioCodec, group: nil, &out)
    }
    let more = (audio?.peak ?? 0) - (source?.peak ?? 0)
    writeVariant(
      video, address(main(video: video, audio)), rate(of: window, with: more), [video.codec.codecString] + audioCodec,
      group: group, &out)
    for rung in rungs {
      guard let track = rung.currentTrack else { continue }
      // The measured rate of the source includes its audio; that of a rung does not.
      writeVariant(
        track, address(rung.rendition), rate(of: rung.window, with: audio?.peak ?? 0),
        [track.codec.codecString] + audioCodec, group: group, &out)
    }
  }

  /// The programme on disk has no rungs.
  private var rungs: [TranscodedRendition] { mediaPlaylist == MediaName.playlist ? epoch.playableRungs : [] }

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
    if let video { attributes += videoAttributes(video) }
    if let group { attributes.append("AUDIO=\"\(group)\"") }
    out.writeString("#EXT-X-STREAM-INF:\(attributes.joined(separator: ","))\n")
    out.writeString("\(address)/\(mediaPlaylist)\n")
  }

  private func main(video: TrackDescription?, _ audio: Audio?) -> Rendition {
    guard layout == .separate else { return .interleaved }
    return video == nil ? audio?.rendition ?? .audio : .video
  }

  private func address(_ rendition: Rendition) -> String { epoch.prefix + rendition.rawValue }

  private func writeGroup(_ each: Audio, _ out: inout ByteBuffer) {
    let audio = each.track
    var attributes = [
      "TYPE=AUDIO", "GROUP-ID=\"\(each.group)\"", "NAME=\"\(audio.language == "und" ? "Audio" : audio.language)\"",
    ]
    attributes += ["LANGUAGE=\"\(audio.language)\"", "DEFAULT=YES", "AUTOSELECT=YES"]
    if let channels = audio.codec.audio?.channels { attributes.append("CHANNELS=\"\(channels)\"") }
    attributes.append("URI=\"\(address(each.rendition))/\(mediaPlaylist)\"")
    out.writeString("#EXT-X-MEDIA:\(attributes.joined(separator: ","))\n")
  }

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
