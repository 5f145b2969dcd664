package import HTTP
package import NIOCore
internal import Publishing
package import Recording
internal import RecordingFiles
internal import Storage

/// `/recordings/{stream}/{file}`: finished recordings with byte ranges, and their thumbnails (`….jpg`).
package struct RecordingRoutes {
  package let library: RecordingLibrary?
  package let thumbnails: RecordingThumbnails?

  package init(library: RecordingLibrary?, thumbnails: RecordingThumbnails?) {
    (self.library, self.thumbnails) = (library, thumbnails)
  }

  package func respond(to request: HTTPRequest, on eventLoop: any EventLoop) -> HTTPAnswer {
    let path = request.path
    guard path.count == 3, let library, let stream = StreamName(path[1]) else { return .now(missing) }
    if let name = RecordingName(thumbnail: path[2]), let thumbnails {
      return thumbnails.answer(for: RecordingKey(stream: stream, name: name), on: eventLoop)
    }
    let kind = request.query("download") == nil ? "inline" : "attachment"
    // Only a download needs the name that it got later. Playback does not wait for the catalogue.
    let named = kind == "inline" ? nil : RecordingName(finished: path[2]).map { RecordingKey(stream: stream, name: $0) }
    let given = named.map { library.catalogue.entry($0, on: eventLoop).map { $0?.annotation.title } }
    let title = (given ?? eventLoop.makeSucceededFuture(nil)).flatMapErrorThrowing { _ in nil }
    return .fromDisk(
      library.open(stream: stream, file: path[2], for: request.client, on: eventLoop).and(title).map { opened, title in
        guard let opened else { return self.missing }
        var response = HTTPResponse.media(
          [.file(opened.range)], type: .mp4, cache: .recording, entityTag: opened.entityTag)
        response.headers.append(Self.disposition(kind, stream, path[2], title ?? opened.title))
        return response
      }.flatMapErrorThrowing { error in
        guard error is OpenRecordings.Full else { throw error }
        return Problem.tooManyFiles.response
      }, on: eventLoop)
  }

  /// RFC 6266: the file name for saving, and with `?download` the request to save it. The name has only letters, digits, dots,
  /// underscores and hyphens.
  /// A name that a client gave to the recording comes in UTF-8 as well (RFC 8187).
  private static func disposition(
    _ kind: String, _ stream: StreamName, _ file: String, _ title: String?
  ) -> HeaderField {
    let name = RecordingName(finished: file).map { "\($0.title(of: stream.description)).mp4" } ?? "recording.mp4"
    guard let title = title.flatMap({ try? RecordingTitle($0) }) else {
      return HeaderField("Content-Disposition", "\(kind); filename=\"\(name)\"")
    }
    let plain = title.fileName.map { "\($0).mp4" } ?? name
    return HeaderField(
      "Content-Disposition", "\(kind); filename=\"\(plain)\"; filename*=UTF-8''\(title.percentEncoded).mp4")
  }

  private var missing: HTTPResponse {
    Problem(.noSuchRecording, "There is no such recording.", help: "See /api/v1/recordings.").response
  }
}
