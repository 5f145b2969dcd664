internal import FMP4
internal import NIOCore

/// Init segments by rendition: a track that stays the same keeps its init segment while others come, go or change.
extension LiveWindow {
  /// The version of the init segment for a rendition's media in a segment.
  package func initVersion(_ rendition: Rendition, of segment: LiveSegment) -> Int {
    initVersion(rendition, in: segment.initVersion)
  }

  /// The version with which the rendition's tracks in a version came.
  package func initVersion(_ rendition: Rendition, in version: Int) -> Int {
    guard let initSegment = inits[version] else { return version }
    guard rendition.kind != nil else { return initSegment.defaultsVersion }
    return rendition.track(in: initSegment.tracks).map { initSegment.version(of: $0.id) } ?? version
  }

  /// The rendition has another init segment than in the segment before.
  package func changesInit(_ rendition: Rendition, at segment: LiveSegment) -> Bool {
    segment.changesInit && initVersion(rendition, of: segment) == segment.initVersion
  }

  /// The rendition's media does not continue that of the segment before. The interleaved layout breaks with each change
  /// of its tracks: other renditions must break together (RFC 8216bis §6.2.4), and this one has none beside it.
  package func breaks(_ rendition: Rendition, before segment: LiveSegment) -> Bool {
    segment.followsDiscontinuity || rendition.kind == nil && segment.changesDefaults
  }

  /// The version of the rendition's next init segment, when the newest segment is complete and has another one.
  package func nextInit(_ rendition: Rendition) -> Int? {
    guard let newest = segments.last, newest.isComplete, let version = currentInit?.version,
      version != newest.initVersion
    else { return nil }
    let next = initVersion(rendition, in: version)
    return next == initVersion(rendition, of: newest) ? nil : next
  }

  /// The file name of a part, by its index.
  package func name(ofPart index: Int, of segment: LiveSegment, in rendition: Rendition) -> String {
    index == 0 && changesInit(rendition, at: segment)
      ? MediaName.firstPart(ofSegment: segment.sequenceNumber, initVersion: segment.initVersion)
      : MediaName.part(PartPosition(segment: segment.sequenceNumber, part: index))
  }

  /// The init segments of these renditions for a segment with this version, for players that ask for them when it is gone. Empty if
  /// the version is unknown.
  func keptInits(of version: Int, _ renditions: [Rendition]) -> [KeptInit] {
    guard let initSegment = inits[version] else { return [] }
    return renditions.compactMap { rendition in
      guard let bytes = initSegment.bytes(of: rendition), bytes.readableBytes <= KeptInit.longest else { return nil }
      return KeptInit(
        rendition: rendition, version: initVersion(rendition, in: version), bytes: Array(bytes.readableBytesView))
    }
  }

  /// The init segments that segments from a version on need.
  static func needed(_ inits: [Int: InitSegment], from version: Int) -> [Int: InitSegment] {
    let kept = inits.filter { $0.key >= version }
    let origins = kept.values.reduce(into: Set<Int>()) { $0.formUnion($1.origins) }
    return inits.filter { $0.key >= version || origins.contains($0.key) }
  }
}
