package import Base
internal import FMP4
internal import Glibc
internal import HTTP
package import Logging
internal import NIOCore
internal import NIOHTTP1
package import Recording
internal import RecordingFiles
internal import RecordingFormat
internal import Storage
internal import Streams
internal import Synchronization
internal import Transcode

/// `/recordings/{stream}/{name}.jpg`: a key frame near the first tenth of a recording, as a JPEG. A worker makes it at the first
/// request, while one thread waits for the worker. Thumbnails are made one after another and stored beside the recording. A
/// recording that cannot be decoded is not tried again by this process.
package final class RecordingThumbnails: Sendable {
  private let library: RecordingLibrary
  private let make: Thumbnails.Maker
  private let logger: Logger
  private let flight: SingleFlight<RecordingKey, HTTPResponse>
  private let failures = Mutex<Set<RecordingKey>>([])

  /// Requests that may wait for the thread; further ones get 503.
  private static let queueLimit = 64
  /// Limit of remembered recordings that cannot be decoded.
  private static let failureLimit = 1000
  /// How long a request waits for its thumbnail.
  private static let patience = TimeAmount.seconds(10)
  /// Position of the key frame, as a share of the recording.
  static let place = 0.1
  /// The largest `moov` that is read for a thumbnail: some hundred hours.
  private static let largestMovie: UInt64 = 256 << 20

  package init(
    library: RecordingLibrary, logger: Logger, pool: any WorkThreads,
    make: @escaping Thumbnails.Maker = StillImageMaker(launcher: .ownProcess).jpeg
  ) {
    self.library = library
    self.make = make
    self.logger = logger
    flight = SingleFlight(limit: Self.queueLimit, on: pool)
  }

  /// 404 if there is no such recording, or no thumbnail of it can be made. 503 if the thread is too busy, or the machine gives no
  /// worker.
  func answer(for key: RecordingKey, on eventLoop: any EventLoop) -> HTTPAnswer {
    guard let made = flight.value(of: key, on: eventLoop, make: { self.produce(key) }) else {
      return .now(Self.tooBusy)
    }
    return .later(made.orElse(Self.tooBusy, after: Self.patience))
  }

  // MARK: On the thread

  private func produce(_ key: RecordingKey) -> HTTPResponse {
    if let folder = try? RecordingFolder.open(library.folder).folder(of: key.stream, ifAbsent: .fail),
      let movie = folder.look(at: key.name.finished)
    {
      switch thumbnail(of: key, in: folder) {
      case .available(let jpeg):
        return Self.response(jpeg, tag: "\"\(String(movie.modifiedAt.nanoseconds, radix: 36))-\(movie.bytes)\"")
      case .none: break
      case .busy: return Self.tooBusy
      }
    }
    return Self.missing
  }

  private enum Thumbnail {
    case available(ByteBuffer)
    case none
    case busy
  }

  private func thumbnail(of key: RecordingKey, in folder: RecordingFolder) -> Thumbnail {
    let kept = try? folder.folder(named: RecordingFolder.thumbnailsName, ifAbsent: .make)
    let name = "\(key.name.stem).jpg"
    if let jpeg = kept?.contents(of: name, atMost: StillImageMaker.largestJPEG) { return .available(jpeg) }
    guard !failures.withLock({ $0.contains(key) }) else { return .none }
    do {
      let jpeg = try keyFrameJPEG(in: key.name.finished, folder)
      kept?.keep(jpeg, as: name)
      return .available(jpeg)
    } catch {
      logger.of(key.stream).warning("no thumbnail of recording \(key.name.finished): \(error)")
      if let error = error as? StillImageError, error.cause == .machine { return .busy }
      failures.withLock { failures in
        if failures.count >= Self.failureLimit { failures = [] }
        failures.insert(key)
      }
      return .none
    }
  }

  private func keyFrameJPEG(in name: String, _ folder: RecordingFolder) throws -> ByteBuffer {
    guard let (file, status) = folder.openFile(name, O_RDONLY) else { throw RecordingError("it cannot be opened") }
    defer { close(file) }
    let movie = FileOutline.movie(
      size: UInt64(clamping: status.st_size), within: FileOutline.maximumBoxes, atMost: Self.largestMovie
    ) { File(file).readAll(at: Int(clamping: $0), count: $1) ?? ByteBuffer() }
    guard let movie else { throw RecordingError("it has no movie header that can be read") }
    let frame = try MovieKeyFrame(in: movie, near: Self.place)
    guard frame.length > 0, frame.length <= StillImageMaker.largestSample,
      let sample = File(file).readAll(at: Int(clamping: frame.offset), count: frame.length)
    else { throw RecordingError("its key frame cannot be read") }
    return try make(sample, frame.track)
  }

  // MARK: Responses

  private static func response(_ jpeg: ByteBuffer, tag: String) -> HTTPResponse {
    HTTPResponse(
      headers: [
        HeaderField("Content-Type", ContentType.jpeg.rawValue),
        HeaderField("Cache-Control", CachePolicy.recording.value),
      ], entityTag: tag, body: .pieces([.bytes(jpeg)]))
  }

  private static let missing = Problem(
    .noSuchRecording, "There is no such recording, or no thumbnail of it can be made.", help: "See /api/v1/recordings."
  ).response

  private static let tooBusy = Thumbnails.tooBusy
}

extension RecordingFolder {
  /// The whole content of a small file; nil if it does not exist or is larger.
  fileprivate func contents(of name: String, atMost limit: Int) -> ByteBuffer? {
    guard let (file, status) = openFile(name, O_RDONLY) else { return nil }
    defer { close(file) }
    let size = Int(status.st_size)
    guard size > 0, size <= limit else { return nil }
    return File(file).readAll(at: 0, count: size)
  }

  /// Writes a file completely or not at all. A disk error leaves no file.
  fileprivate func keep(_ bytes: ByteBuffer, as name: String) {
    let temporary = name + RecordingName.temporaryEnding
    let file = openat(descriptor, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0o644)
    guard file >= 0 else { return }
    let isWhole = (try? File(file).write(bytes, at: 0)) != nil
    close(file)
    if !isWhole || renameat(descriptor, temporary, descriptor, name) != 0 { remove(temporary) }
  }
}
