internal import Base
internal import FMP4
internal import HTTP
internal import NIOCore
internal import Recording
internal import RecordingFiles
internal import Storage
internal import Streams

/// Media that has left the window and is still on disk: the same addresses with the same bytes.
extension MediaRoutes {
  /// Rungs of the ladder are kept in memory only.
  private var onDisk: RewindArchive? { rendition.isRung ? nil : archive?.epoch(epoch) }

  /// The playlist of the whole rewindable programme.
  func programme(_ window: LiveWindow) -> HTTPAnswer {
    guard !window.segments.isEmpty, window.targetDuration != nil else {
      return .now(Problem.notYet(stream.name).response)
    }
    let programme = onDisk ?? RewindArchive(length: .zero)
    guard let archive else { return .now(HTTPResponse(programme.playlist(rendition, window))) }
    return .fromDisk(
      archive.threads.runIfActive(eventLoop: eventLoop) { HTTPResponse(programme.playlist(rendition, window)) },
      on: eventLoop)
  }

  func oldInitSegment(_ version: Int) -> HTTPResponse? {
    onDisk?.initSegment(version, rendition).map { .media([.bytes($0)], type: type, cache: .immutable) }
  }

  /// A segment that has left the window.
  func oldSegment(_ number: Int, _ window: LiveWindow) -> HTTPAnswer {
    answer(orElse: number < window.firstSequenceNumber ? lost : missing) { $0.find(number) }
  }

  func oldSegment(at time: Int64, initVersion version: Int, _ window: LiveWindow) -> HTTPAnswer {
    answer(orElse: version <= window.lastLostInit ? lost : missing) {
      $0.find(time: time, initVersion: version, rendition)
    }
  }

  /// The response for a segment lost with the previous process: a `styp` without media. Shaka Player repeats a request that gets
  /// 404, and continues with the next segment after an empty one.
  var lost: HTTPResponse { .media([.bytes(FragmentBoxes.singleSegmentType)], type: type, cache: .never) }

  /// The same, after its init segment.
  func oldPlayable(_ number: Int) -> HTTPAnswer {
    fromDisk(orElse: missing) { archive in
      guard let (source, index) = archive.find(number),
        let pieces = try source.playablePieces(ofSegment: index, rendition)
      else { return missing }
      return .media(pieces, type: type, cache: .immutable, entityTag: playableTag(number))
    }
  }

  private func answer(
    orElse absent: HTTPResponse, _ find: @escaping @Sendable (RewindArchive) -> (source: ReplaySource, index: Int)?
  ) -> HTTPAnswer {
    fromDisk(orElse: absent) { archive in
      guard let (source, index) = find(archive) else { return absent }
      let number = source.withIndex { Int($0.segments[index].number) }
      guard let pieces = try source.pieces(ofSegment: index, rendition) else { return absent }
      return .media(
        pieces, type: type, cache: .immutable, entityTag: "\"\(epoch)-\(rendition.rawValue)-\(number)\"")
    }
  }

  /// Runs on a disk thread: the search may take a while, and waits for a playlist being rendered.
  private func fromDisk(
    orElse absent: HTTPResponse, _ look: @escaping @Sendable (RewindArchive) throws -> HTTPResponse
  ) -> HTTPAnswer {
    guard let archive, let onDisk else { return .now(absent) }
    return .fromDisk(
      archive.threads.runIfActive(eventLoop: eventLoop) { try look(onDisk) }
        .flatMapErrorThrowing { error in Problem.unreadable("\(error)").response }, on: eventLoop)
  }
}
