package import Base
internal import FMP4
package import HTTP
package import NIOCore
package import Publishing
package import Recording
internal import RecordingFiles
internal import Storage
package import Streams

/// `/recordings/{stream}/{name}/…`: a recording as HLS and DASH, finished or being written. `{name}` is the name of its file
/// without the ending. Segments count from 1, and an address never stands for different bytes.
package struct ReplayRoutes {
  package let archive: RecordingArchive
  package let streams: StreamRegistry
  package let layout: @Sendable (StreamName) -> StreamSettings.HLSLayout
  package let longClips: LongClips

  package init(
    archive: RecordingArchive, streams: StreamRegistry,
    layout: @escaping @Sendable (StreamName) -> StreamSettings.HLSLayout, longClips: LongClips
  ) {
    (self.archive, self.streams, self.layout, self.longClips) = (archive, streams, layout, longClips)
  }

  /// `/recordings/{stream}/{name}/index.m3u8`, `manifest.mpd`, `{rendition}/…`
  package func respond(to request: HTTPRequest, on eventLoop: any EventLoop) -> HTTPAnswer {
    let path = request.path
    guard path.count == 4 || path.count == 5, let stream = StreamName(path[1]) else { return .now(missing) }
    let answer: @Sendable (ReplaySource) throws -> HTTPResponse
    if path.count == 4 {
      let document: ReplayDocument
      switch path[3] {
      case "index.m3u8": document = .multivariant(layout(stream), video: request.query("video").flatMap { Int($0) })
      case "manifest.mpd": document = .manifest
      default: return .now(missing)
      }
      answer = { self.document(document, of: $0) }
    } else {
      guard let rendition = Rendition(rawValue: path[3]), let asked = MediaName.parse(path[4]) else {
        return .now(missing)
      }
      answer = { try self.media(asked, rendition, of: $0) }
    }
    return open(stream, path[2], for: request.client, on: eventLoop, answer)
  }

  /// Opens the recording and responds on a thread that may wait for the disk, for at most `patience`.
  package func open(
    _ stream: StreamName, _ name: String, for client: NetworkAddress?, on eventLoop: any EventLoop,
    patience: TimeAmount = .seconds(3),
    _ answer: @escaping @Sendable (ReplaySource) throws -> HTTPResponse
  ) -> HTTPAnswer {
    .fromDisk(
      archive.threads.runIfActive(eventLoop: eventLoop) {
        guard let source = try archive.open(stream, name, for: client) else { return missing }
        return try answer(source)
      }.flatMapErrorThrowing { error in
        (error is OpenRecordings.Full ? Problem.tooManyFiles : Problem.unreadable("\(error)")).response
      }, on: eventLoop, patience: patience)
  }

  package var missing: HTTPResponse {
    Problem(.noSuchRecording, "There is no such recording, or no such part of it.", help: "See /api/v1/recordings.")
      .response
  }

  private func document(_ document: ReplayDocument, of source: ReplaySource) -> HTTPResponse {
    source.document(document, target: promisedTarget(source), publicURL: archive.publicURL).map { HTTPResponse($0) }
      ?? Problem.notYet(source.stream).response
  }

  /// The target duration promised by the live stream for a recording being written, so that the recording's playlist need never
  /// change it.
  private func promisedTarget(_ source: ReplaySource) -> Int? {
    guard !source.isOver, let epoch = source.epoch else { return nil }
    return streams.stream(source.stream)?.window(ofEpoch: epoch)?.targetDuration
  }

  private func media(
    _ asked: MediaName.Asked, _ rendition: Rendition, of source: ReplaySource
  ) throws -> HTTPResponse {
    switch asked {
    case .playlist: return document(.media(rendition), of: source)
    case .keyFrames: return rendition == .video ? document(.keyFrames, of: source) : missing
    case .initSegment(let version):
      return source.initSegment(version, rendition).map {
        .media([.bytes($0)], type: type(rendition), cache: .immutable)
      } ?? missing
    case .segment(let number): return try segment(number - 1, rendition, of: source)
    case .segmentAt(let time, let version):
      guard let index = source.withIndex({ $0.index(ofTime: time, rendition, initVersion: version) })
      else { return missing }
      return try segment(index, rendition, of: source)
    case .playable(let number):
      guard let pieces = try source.playablePieces(ofSegment: number - 1, rendition) else { return missing }
      return .media(
        pieces, type: type(rendition), cache: .immutable,
        entityTag: "\"\(source.name ?? "")-\(rendition.rawValue)-\(number).mp4\"")
    case .part, .firstPart, .programme: return missing
    }
  }

  private func segment(_ index: Int, _ rendition: Rendition, of source: ReplaySource) throws -> HTTPResponse {
    guard let pieces = try source.pieces(ofSegment: index, rendition) else { return missing }
    return .media(
      pieces, type: type(rendition), cache: .immutable,
      entityTag: "\"\(source.name ?? "")-\(rendition.rawValue)-\(index + 1)\"")
  }

  private func type(_ rendition: Rendition) -> ContentType { rendition.kind == .audio ? .audioMP4 : .mp4 }
}
