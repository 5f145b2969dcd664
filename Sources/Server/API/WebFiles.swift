internal import CWeb
internal import Glibc
internal import HTTP
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import Storage

/// The files of web/: embedded in the binary, or read from a folder while somebody works on them (`--web`).
/// Pages carry a Content-Security-Policy; everything is asked for again and answered with 304 while
/// it is the same.
final class WebFiles: Sendable {
  /// The largest file that is read from a folder, in bytes.
  static let largestFile = 8 << 20
  /// The page of addresses at which there is nothing.
  static let lostPage = "404.html"

  private enum Source: Sendable {
    case embedded([String: PreencodedResponse])
    case folder(String, NIOThreadPool)
  }

  private let source: Source
  private let securityPolicy: HeaderField

  /// `frameAncestors` is who may embed the pages, as the directive of that name writes it.
  init(
    folder: String? = nil, frameAncestors: String = "'self'",
    pool: NIOThreadPool = NIOSingletons.posixBlockingThreadPool
  ) {
    let policy = HeaderField(
      "Content-Security-Policy", "default-src 'self'; media-src 'self' blob:; frame-ancestors \(frameAncestors)")
    securityPolicy = policy
    if let folder {
      source = .folder(folder, pool)
    } else {
      source = .embedded(
        Self.embeddedFiles().reduce(into: [:]) { files, file in
          files[file.name] = Self.response(name: file.name, body: file.bytes, securityPolicy: policy)
        })
    }
  }

  /// The file of that path below web/ (`["index.html"]`), whose segments a `RequestTarget` has checked.
  func answer(_ path: [String], to request: HTTPRequest, on eventLoop: any EventLoop) -> HTTPAnswer {
    guard request.isRead else { return .now(Problem.methodNotAllowed().response) }
    let name = path.joined(separator: "/")
    switch source {
    case .embedded(let files):
      return .now(files[name].map { HTTPResponse($0) } ?? Self.missing(name))
    case .folder(let folder, let pool):
      let policy = securityPolicy
      return .later(
        pool.runIfActive(eventLoop: eventLoop) {
          guard let body = Self.read(folder + "/" + name) else { return Self.missing(name) }
          return HTTPResponse(Self.response(name: name, body: body, securityPolicy: policy))
        })
    }
  }

  private static func missing(_ name: String) -> HTTPResponse {
    Problem.notFound("There is no file \(name) among the pages.").response
  }

  private static func response(name: String, body: ByteBuffer, securityPolicy: HeaderField) -> PreencodedResponse {
    let type = ContentType(fileName: name)
    let headers = [securityPolicy, HeaderField("Referrer-Policy", "same-origin")]
    if name == lostPage {
      // Others get JSON at the same address.
      let headers = headers + [HeaderField("Vary", "Accept")]
      return PreencodedResponse(status: .notFound, type: type, cache: .never, headers: headers, body: body)
    }
    return PreencodedResponse(type: type, cache: .page, headers: type == .html ? headers : [], body: body)
  }

  private static func embeddedFiles() -> [(name: String, bytes: ByteBuffer)] {
    (0..<weir_web_file_count).compactMap { index in
      guard let file = weir_web_file_at(index) else { return nil }
      let bytes = UnsafeRawBufferPointer(start: file.pointee.bytes, count: file.pointee.length)
      return (String(cString: file.pointee.path), ByteBuffer(bytes: bytes))
    }
  }

  /// A whole file; nil if it is not a readable file of at most `largestFile` bytes.
  private static func read(_ path: String) -> ByteBuffer? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_size <= largestFile else {
      return nil
    }
    return File(descriptor).readAll(at: 0, count: Int(status.st_size))
  }
}
