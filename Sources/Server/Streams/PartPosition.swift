/// The position of a part in a rendition: the media sequence number of its segment, and its index there, from 0.
package struct PartPosition: Hashable, Sendable, Comparable {
  package var segment: Int
  package var part: Int

  package init(segment: Int, part: Int) {
    (self.segment, self.part) = (segment, part)
  }

  package static func < (a: PartPosition, b: PartPosition) -> Bool {
    (a.segment, a.part) < (b.segment, b.part)
  }
}

extension LiveWindow {
  /// The next part of a rendition, for preload hints. After the expected last fragment of a segment it is the first part of the
  /// next segment.
  package func nextPart(of rendition: Rendition) -> PartPosition {
    guard let newest = segments.last, !newest.isComplete else {
      return PartPosition(segment: nextSequenceNumber, part: 0)
    }
    if newest.fragments.last?.isExpectedLast == true {
      return PartPosition(segment: nextSequenceNumber, part: 0)
    }
    return PartPosition(segment: newest.sequenceNumber, part: partCount(of: rendition, in: newest))
  }

  /// The end of the rendition's playlist: the position after its newest part.
  package func edge(of rendition: Rendition) -> PartPosition {
    guard let newest = segments.last, !newest.isComplete else {
      return PartPosition(segment: nextSequenceNumber, part: 0)
    }
    return PartPosition(segment: newest.sequenceNumber, part: partCount(of: rendition, in: newest))
  }

  /// Whether the rendition's playlist contains this part or a later one. A part after the last one of a complete segment means
  /// the first part of the next segment (RFC 8216bis §6.2.5.2).
  package func hasReached(_ position: PartPosition, in rendition: Rendition) -> Bool {
    let edge = edge(of: rendition)
    guard position.segment < edge.segment else { return position < edge }
    // Of an outage nothing else comes.
    guard let segment = segment(position.segment), !segment.isOutage,
      position.part >= partCount(of: rendition, in: segment)
    else { return true }
    return PartPosition(segment: position.segment + 1, part: 0) < edge
  }

  /// Whether the rendition's playlist contains the whole segment of this number, or a later one.
  package func hasReached(segment number: Int, in rendition: Rendition) -> Bool {
    number < edge(of: rendition).segment
  }

  package func partCount(of rendition: Rendition, in segment: LiveSegment) -> Int {
    layout(rendition, of: segment).map { segment.partCount(of: $0.trackID) } ?? 0
  }
}
