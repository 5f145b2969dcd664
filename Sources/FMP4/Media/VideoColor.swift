/// Colours stated outside of the parameter sets: by the publisher, or by messages in the bitstream.
package struct VideoColor: Sendable, Hashable {
  package var description: ColorDescription?
  package var masteringDisplay: MasteringDisplay?
  package var lightLevel: ContentLightLevel?

  package init(
    description: ColorDescription? = nil, masteringDisplay: MasteringDisplay? = nil,
    lightLevel: ContentLightLevel? = nil
  ) {
    self.description = description
    self.masteringDisplay = masteringDisplay
    self.lightLevel = lightLevel
  }
}

extension VideoColor {
  /// Merges two statements; the first has precedence. Nil if both are nil.
  package static func together(_ first: VideoColor?, _ second: VideoColor?) -> VideoColor? {
    guard let first, let second else { return first ?? second }
    return VideoColor(
      description: first.description ?? second.description,
      masteringDisplay: first.masteringDisplay ?? second.masteringDisplay,
      lightLevel: first.lightLevel ?? second.lightLevel)
  }
}

extension TrackDescription {
  /// Meaning of the video's colour values. The bitstream has precedence; the publisher's statement fills its gaps.
  package var color: ColorDescription? {
    guard let stated = statedColor?.description else { return codec.videoFormat?.color }
    guard let inStream = codec.videoFormat?.color else { return stated }
    return inStream.completed(by: stated)
  }
}

extension ColorDescription {
  /// Code point for "unspecified" in all three fields of ITU-T H.273.
  private static let unspecified: UInt8 = 2

  /// Fills unspecified code points from `other`. The range is kept.
  func completed(by other: ColorDescription) -> ColorDescription {
    ColorDescription(
      primaries: primaries == Self.unspecified ? other.primaries : primaries,
      transfer: transfer == Self.unspecified ? other.transfer : transfer,
      matrix: matrix == Self.unspecified ? other.matrix : matrix, range: range)
  }
}
