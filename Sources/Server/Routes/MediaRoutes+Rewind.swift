internal import FMP4
internal import NIOCore
internal import NIOPosix

/// What has left the window and is still on disk: the same addresses, the same bytes.
extension MediaRoutes {
  /// Rungs are in memory alone.
  private var onDisk: EpochArchive? { rendition.isRung ? nil : archive?.epoch(epoch) }

  /// The playlist of the whole programme, as far as rewinding reaches.
  func programme(_ window: LiveWindow) -> HTTPAnswer {
    guard !window.segments.isEmpty, window.targetDuration != nil else {
      return .now(Problem.notYet(stream.name).response)
    }
    let programme = onDisk ?? EpochArchive(length: .zero)
    guard let archive else { return .now(HTTPResponse(programme.playlist(rendition, window))) }
    return .later(
      archive.threads.runIfActive(eventLoop: eventLoop) { HTTPResponse(programme.playlist(rendition, window)) })
  }

  func oldInitSegment(_ version: Int) -> HTTPResponse? {
    onDisk?.initSegment(version, rendition).map { .media([.bytes($0)], type: type, cache: .immutable) }
  }

  /// A segment that the window no longer has; nil when it is not on disk either.
  func oldSegment(_ number: Int) -> HTTPAnswer? {
    onDisk?.find(number).map { answer($0.source, $0.index) }
  }

  func oldSegment(at time: Int64, initVersion version: Int, _ kind: MediaKind) -> HTTPAnswer? {
    onDisk?.find(time: time, initVersion: version, kind).map { answer($0.source, $0.index) }
  }

  private func answer(_ source: ReplaySource, _ index: Int) -> HTTPAnswer {
    guard let archive else { return .now(missing) }
    return .later(
      archive.threads.runIfActive(eventLoop: eventLoop) {
        let number = source.withIndex { Int($0.segments[index].number) }
        guard let pieces = try source.pieces(ofSegment: index, rendition) else { return missing }
        return .media(
          pieces, type: type, cache: .immutable, entityTag: "\"\(epoch)-\(rendition.rawValue)-\(number)\"")
      }.flatMapErrorThrowing { error in Problem.unreadable("\(error)").response })
  }
}
