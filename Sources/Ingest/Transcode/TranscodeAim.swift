/// What a transcoder makes of a track: rungs of the video, or audio in another codec.
package enum TranscodeAim: Sendable, Hashable {
  case video([RungSpecification])
  case audio(AudioSpecification)

  /// Of the renditions, in order.
  var names: [String] {
    switch self {
    case .video(let rungs): rungs.map(\.name)
    case .audio(let audio): [audio.name]
    }
  }
}
