internal import CWeb
internal import Glibc
internal import HTTP
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import Storage
internal import Synchronization

/// The files of web/: embedded in the binary, or read from a folder during development (`--web`). Pages carry a
/// Content-Security-Policy and a Permissions-Policy and are revalidated, with 304 while they are unchanged. Their scripts and
/// styles have addresses that contain the name of the build, and are cached for good. A script directly in web/
/// (`/web/weir-player.js`) has a lasting address for other sites: it is revalidated, and its imports name the build.
final class WebFiles: Sendable {
  /// The largest file that is read from a folder, in bytes.
  static let largestFile = 8 << 20
  /// The page for addresses that do not exist.
  static let notFoundPage = "pages/not-found.html"
  /// The page that publishes: the only one that may use the visitor's camera, microphone and screen.
  static let publishPage = ["pages", "publish.html"]
  /// Prefix of a build's name: the first part of an address below /web, `/web/build-0123456789abcdef/…`.
  private static let buildPrefix = "build-"

  private enum Source: Sendable {
    /// By path: cacheable for good below the build's address, and revalidated at any other address.
    case embedded(build: String, lasting: [String: PreencodedResponse], current: [String: PreencodedResponse])
    case folder(String, NIOThreadPool)
  }

  /// A page with the head of one stream.
  private struct OwnPage: Hashable {
    let name: String
    let head: PageHead
  }

  /// Most pages with a head of their own that are kept.
  private static let ownPages = 64

  private let source: Source
  private let securityPolicy: HeaderField
  /// Made once, because a page is compressed on an event loop.
  private let made = Mutex<[OwnPage: PreencodedResponse]>([:])

  init(folder: String? = nil, pool: NIOThreadPool = NIOSingletons.posixBlockingThreadPool) {
    let policy = Self.securityPolicy(frameAncestors: PageSharing.onlyThisServer)
    securityPolicy = policy
    if let folder {
      source = .folder(folder, pool)
    } else {
      let files = Self.embeddedFiles()
      var all = ByteBuffer()
      for file in files {
        all.writeString(file.name)
        all.writeImmutableBuffer(file.bytes)
      }
      let build = Self.buildPrefix + EntityTag.of(all).filter { $0 != "\"" }
      var lasting: [String: PreencodedResponse] = [:]
      var current: [String: PreencodedResponse] = [:]
      for file in files {
        let type = ContentType(fileName: file.name)
        let isEntry = !file.name.contains("/")
        let body =
          type == .html
          ? Self.replacing("\"/web/", in: file.bytes, by: "\"/web/\(build)/")
          : isEntry ? Self.replacing("\"./", in: file.bytes, by: "\"./\(build)/") : file.bytes
        current[file.name] = Self.response(name: file.name, body: body, securityPolicy: policy)
        if type != .html { lasting[file.name] = PreencodedResponse(type: type, cache: .immutable, body: file.bytes) }
      }
      source = .embedded(build: build, lasting: lasting, current: current)
    }
  }

  /// The file with that path below web/ (`["pages", "index.html"]`), whose segments a `RequestTarget` has checked. The path may
  /// begin with a build. A page of another build gets the current file. `head` is what the request's page has of its own.
  func answer(
    _ path: [String], to request: HTTPRequest, on eventLoop: any EventLoop, with head: PageHead? = nil
  ) -> HTTPAnswer {
    guard request.isRead else { return .now(Problem.methodNotAllowed().response) }
    let isOfBuild = path.first?.hasPrefix(Self.buildPrefix) ?? false
    let name = path.dropFirst(isOfBuild ? 1 : 0).joined(separator: "/")
    switch source {
    case .embedded(let build, let lasting, let current):
      let files = path.first == build ? lasting : current
      guard let file = files[name] else { return .now(Self.missing(name)) }
      return .now(HTTPResponse(head.map { page(name, file, $0) } ?? file))
    case .folder(let folder, let pool):
      let policy = securityPolicy
      return .later(
        pool.runIfActive(eventLoop: eventLoop) {
          guard let body = Self.read(folder + "/" + name) else { return Self.missing(name) }
          let file = Self.response(name: name, body: body, securityPolicy: policy)
          return HTTPResponse(head.map { Self.page(file, $0) } ?? file)
        })
    }
  }

  private static func missing(_ name: String) -> HTTPResponse {
    Problem.notFound("The pages have no file \(name).").response
  }

  private static func response(name: String, body: ByteBuffer, securityPolicy: HeaderField) -> PreencodedResponse {
    let type = ContentType(fileName: name)
    let devices = name == publishPage.joined(separator: "/") ? "(self)" : "()"
    let permissions = ["camera", "microphone", "display-capture"].map { "\($0)=\(devices)" }.joined(separator: ", ")
    let headers = [
      securityPolicy, HeaderField("Permissions-Policy", permissions), HeaderField("Referrer-Policy", "no-referrer"),
    ]
    if name == notFoundPage {
      // Other clients get JSON at the same address.
      let headers = headers + [HeaderField("Vary", "Accept")]
      return PreencodedResponse(status: .notFound, type: type, cache: .never, headers: headers, body: body)
    }
    return PreencodedResponse(type: type, cache: .page, headers: type == .html ? headers : [], body: body)
  }

  /// A page with a head of its own.
  private func page(_ name: String, _ file: PreencodedResponse, _ head: PageHead) -> PreencodedResponse {
    let key = OwnPage(name: name, head: head)
    if let page = made.withLock({ $0[key] }) { return page }
    let page = Self.page(file, head)
    made.withLock { made in
      if made.count >= Self.ownPages { made.removeAll(keepingCapacity: true) }
      made[key] = page
    }
    return page
  }

  private static func page(_ file: PreencodedResponse, _ head: PageHead) -> PreencodedResponse {
    let body = head.tags.map { replacing(PageSharing.mark, in: file.body, by: $0) } ?? file.body
    let policy = securityPolicy(frameAncestors: head.frameAncestors)
    // A cached page keeps its policy at a 304, so another policy is another page.
    var tagged = body
    tagged.writeString(policy.value)
    // These are made of the type and the policy below.
    let own = file.fields.filter {
      $0.name != "Content-Type" && $0.name != "Cache-Control" && ($0.name != "Vary" || $0.value != "Accept-Encoding")
    }
    return PreencodedResponse(
      status: file.status, type: .html, cache: file.status == .ok ? .page : .never,
      headers: own.map { $0.name == policy.name ? policy : $0 }, entityTag: EntityTag.of(tagged), body: body)
  }

  private static func securityPolicy(frameAncestors: String) -> HeaderField {
    HeaderField(
      "Content-Security-Policy", "default-src 'self'; media-src 'self' blob:; frame-ancestors \(frameAncestors)")
  }

  private static func replacing(_ text: String, in file: ByteBuffer, by other: String) -> ByteBuffer {
    let parts = String(buffer: file).split(separator: text, omittingEmptySubsequences: false)
    return ByteBuffer(string: parts.joined(separator: other))
  }

  private static func embeddedFiles() -> [(name: String, bytes: ByteBuffer)] {
    (0..<weir_web_file_count).compactMap { index in
      guard let file = weir_web_file_at(index) else { return nil }
      let bytes = UnsafeRawBufferPointer(start: file.pointee.bytes, count: file.pointee.length)
      return (String(cString: file.pointee.path), ByteBuffer(bytes: bytes))
    }
  }

  /// The content of a file; nil if it is not a readable file of at most `largestFile` bytes.
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
