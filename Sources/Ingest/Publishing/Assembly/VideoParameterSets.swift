package import FMP4
internal import NIOCore

/// Makes the configuration of a video track from the parameter sets in its access units.
package struct VideoParameterSets {
  package let coding: CodecID
  /// Nil until there is a set of each kind.
  package private(set) var codec: Codec?
  /// In order of arrival, until they make a configuration.
  private var sets: [[UInt8]] = []

  /// `coding` is H.264 or HEVC.
  package init(_ coding: CodecID) { self.coding = coding }

  /// Takes the parameter sets of an access unit. True if they give a new configuration. Throws if all kinds are there
  /// and weir cannot use them.
  package mutating func receive(_ new: [[UInt8]]) throws(CodecError) -> Bool {
    guard !new.isEmpty else { return false }
    if let codec {
      guard let changed = codec.updated(withParameterSets: new) else { return false }
      self.codec = changed
      return true
    }
    for set in new where !sets.contains(set) { sets.append(set) }
    if sets.count > PublicationLimits.parameterSets { sets.removeFirst(sets.count &- PublicationLimits.parameterSets) }
    guard isComplete else { return false }
    defer { sets = [] }
    codec = try configuration()
    return true
  }

  private static let (hevcVideo, hevcSequence, hevcPicture): (UInt8, UInt8, UInt8) = (32, 33, 34)
  private static let (h264Sequence, h264Picture): (UInt8, UInt8) = (7, 8)

  private var isComplete: Bool {
    coding == .hevc
      ? !all(Self.hevcVideo).isEmpty && !all(Self.hevcSequence).isEmpty && !all(Self.hevcPicture).isEmpty
      : !all(Self.h264Sequence).isEmpty && !all(Self.h264Picture).isEmpty
  }

  private func configuration() throws(CodecError) -> Codec {
    if coding == .hevc {
      return Codec(
        try HEVC.Configuration(vps: all(Self.hevcVideo), sps: all(Self.hevcSequence), pps: all(Self.hevcPicture)))
    }
    return Codec(try H264.Configuration(sps: all(Self.h264Sequence), pps: all(Self.h264Picture)))
  }

  /// The sets that are NAL units of a type.
  private func all(_ type: UInt8) -> [[UInt8]] {
    sets.filter { set in
      guard let header = set.first else { return false }
      return (coding == .hevc ? header >> 1 & 63 : header & 31) == type
    }
  }
}
