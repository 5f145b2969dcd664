internal import FMP4
internal import NIOCore
internal import Streams

/// A group of audio renditions in one codec (EXT-X-MEDIA, RFC 8216bis §4.4.6.1): players choose among them by language.
struct HLSAudioGroup {
  struct Member {
    var track: TrackDescription
    var rendition: Rendition
    /// Unique within its group.
    var name: String
    var isDefault: Bool
  }

  var id: String
  /// Not empty. Players begin with the default one.
  var members: [Member]
  /// The highest rate of a member, in bits per second.
  var peak: Int

  var codecString: String { members.first?.track.codec.codecString ?? "" }

  /// The groups of a stream's audio tracks: that of the first track's codec is "audio".
  static func groups(
    of tracks: [TrackDescription], named chosen: AudioNames = AudioNames(), peak: (TrackDescription) -> Int
  ) -> [HLSAudioGroup] {
    var groups: [HLSAudioGroup] = []
    for track in tracks {
      let index = groups.firstIndex { $0.codecString == track.codec.codecString }
      var name = chosen[track] ?? Self.name(of: track)
      let names = index.map { groups[$0].members.map(\.name) } ?? []
      if names.contains(name) { name += " \(track.number)" }
      let member = Member(track: track, rendition: Rendition(track), name: name, isDefault: index == nil)
      if let index {
        groups[index].members.append(member)
        groups[index].peak = max(groups[index].peak, peak(track))
      } else {
        let id = groups.isEmpty ? "audio" : "audio-\(track.number)"
        groups.append(HLSAudioGroup(id: id, members: [member], peak: peak(track)))
      }
    }
    return groups
  }

  static func name(of track: TrackDescription) -> String {
    let language = track.language == "und" ? "Audio" : track.language
    switch track.role {
    case .main: return language
    case .hearingImpaired: return "\(language) (clear speech)"
    case .description: return "\(language) (description)"
    }
  }

  /// Writes its renditions. `uri` gives the address of a rendition's playlist.
  func write(_ uri: (Rendition) -> String, _ out: inout ByteBuffer) {
    for member in members {
      let track = member.track
      var attributes = [
        "TYPE=AUDIO", "GROUP-ID=\"\(id)\"", "NAME=\"\(member.name)\"",
        "LANGUAGE=\"\(LanguageCode.tag(track.language))\"", "DEFAULT=\(member.isDefault ? "YES" : "NO")",
        "AUTOSELECT=YES",
      ]
      if let channels = track.codec.audio?.channels { attributes.append("CHANNELS=\"\(channels)\"") }
      switch track.role {
      case .main: break
      case .hearingImpaired:
        attributes.append("CHARACTERISTICS=\"public.accessibility.enhances-speech-intelligibility\"")
      case .description: attributes.append("CHARACTERISTICS=\"public.accessibility.describes-video\"")
      }
      attributes.append("URI=\"\(uri(member.rendition))\"")
      out.writeString("#EXT-X-MEDIA:\(attributes.joined(separator: ","))\n")
    }
  }
}
