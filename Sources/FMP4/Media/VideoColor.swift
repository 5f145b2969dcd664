/// What is said of a picture's colours beside the parameter sets: by the publisher, or by
/// messages in the bitstream.
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
  /// Both together; where both say something this one counts. Nil where neither does.
  package static func together(_ first: VideoColor?, _ second: VideoColor?) -> VideoColor? {
    guard let first, let second else { return first ?? second }
    return VideoColor(
      description: first.description ?? second.description,
      masteringDisplay: first.masteringDisplay ?? second.masteringDisplay,
      lightLevel: first.lightLevel ?? second.lightLevel)
  }
}

extension TrackDescription {
  /// What the pictures' numbers mean: what the bitstream says, and where it says nothing what the publisher stated.
  package var color: ColorDescription? {
    guard let stated = statedColor?.description else { return codec.picture?.color }
    guard let inStream = codec.picture?.color else { return stated }
    return inStream.completed(by: stated)
  }
}

extension ColorDescription {
  /// "Unspecified" in all three code points of ITU-T H.273.
  private static let unspecified: UInt8 = 2

  /// With the other's code points where this one has none; the range is this one's.
  func completed(by other: ColorDescription) -> ColorDescription {
    ColorDescription(
      primaries: primaries == Self.unspecified ? other.primaries : primaries,
      transfer: transfer == Self.unspecified ? other.transfer : transfer,
      matrix: matrix == Self.unspecified ? other.matrix : matrix, range: range)
  }
}
