internal import Glibc
internal import HTTP
internal import NIOCore
internal import NIOHTTP1
package import NIOPosix
internal import Storage
internal import Synchronization

/// The files of web/: embedded in the binary, or read from a folder during development (`--web`). Pages carry a
/// Content-Security-Policy and a Permissions-Policy and are revalidated, with 304 while they are unchanged. Their scripts and
/// styles have addresses that contain the name of the build, and are cached for good. A script directly in web/
/// (`/web/weir-player.js`) has a lasting address for other sites: it is revalidated, and its imports name the build.
package final class WebFiles: Sendable {
  /// The largest file that is read from a folder, in bytes.
  static let largestFile = 8 << 20
  /// The page for addresses that do not exist.
  static let notFoundPage = "pages/not-found.html"
  /// The page in place of a stream's page that the reader may not see.
  static let noAccessPage = "pages/no-access.html"
  /// The page that publishes: the only one that may use the visitor's camera, microphone and screen.
  static let publishPage = ["pages", "publish.html"]

  private enum Source: Sendable {
    case embedded
    case folder(String, NIOThreadPool)
  }

  /// How an address names a file.
  private enum Naming: Hashable {
    /// By the build: `/web/build-0123456789abcdef/…`. It is cacheable for good.
    case ofBuild
    /// Whatever file has that path now. It is revalidated.
    case current
  }

  private struct NamedFile: Hashable {
    let name: String
    let naming: Naming
  }

  /// A page with the head of one stream.
  private struct OwnPage: Hashable {
    let name: String
    let head: PageHead
  }

  /// Most pages with a head of their own that are kept.
  private static let ownPages = 64

  private let source: Source
  /// What paths begin with for clients (`PublicURL.path`).
  private let prefix: String
  private let securityPolicy: HeaderField
  /// Responses with embedded files. Each is made at its first request: most servers never send most of them, and they take
  /// three times the size of the files.
  private let kept = Mutex<[NamedFile: PreencodedResponse]>([:])
  /// Made once, because a page is compressed on an event loop.
  private let made = Mutex<[OwnPage: PreencodedResponse]>([:])

  package init(
    folder: String? = nil, prefix: String = "", pool: NIOThreadPool = NIOSingletons.posixBlockingThreadPool
  ) {
    self.prefix = prefix
    securityPolicy = Self.securityPolicy(frameAncestors: PageSharing.onlyThisServer)
    source = folder.map { .folder($0, pool) } ?? .embedded
  }

  /// The file with that path below web/ (`["pages", "index.html"]`), whose segments a `RequestTarget` has checked. The path may
  /// begin with a build. A page of another build gets the current file. `head` is what the request's page has of its own.
  func answer(
    _ path: [String], to request: HTTPRequest, on eventLoop: any EventLoop, with head: PageHead? = nil
  ) -> HTTPAnswer {
    guard request.isRead else { return .now(Problem.methodNotAllowed().response) }
    let isOfBuild = path.first?.hasPrefix(EmbeddedWebFiles.buildPrefix) ?? false
    let name = path.dropFirst(isOfBuild ? 1 : 0).joined(separator: "/")
    switch source {
    case .embedded:
      let files = EmbeddedWebFiles.ofProgram
      let naming: Naming = path.first == files.build ? .ofBuild : .current
      guard let file = response(NamedFile(name: name, naming: naming), of: files) else {
        return .now(Self.missing(name))
      }
      return .now(HTTPResponse(head.map { page(name, file, $0) } ?? file))
    case .folder(let folder, let pool):
      let (policy, prefix) = (securityPolicy, prefix)
      return .later(
        pool.runIfActive(eventLoop: eventLoop) {
          guard let body = Self.read(folder + "/" + name) else { return Self.missing(name) }
          let file = Self.response(name: name, body: Self.placed(body, name, below: prefix), securityPolicy: policy)
          return HTTPResponse(head.map { Self.page(file, $0) } ?? file)
        })
    }
  }

  /// The response with an embedded file; nil if there is none at that address.
  private func response(_ file: NamedFile, of files: EmbeddedWebFiles) -> PreencodedResponse? {
    if let response = kept.withLock({ $0[file] }) { return response }
    guard let made = makeResponse(file, of: files) else { return nil }
    // Another loop may have made it meanwhile: all are to compress one.
    return kept.withLock { kept in
      if let first = kept[file] { return first }
      kept[file] = made
      return made
    }
  }

  private func makeResponse(_ file: NamedFile, of files: EmbeddedWebFiles) -> PreencodedResponse? {
    switch file.naming {
    case .ofBuild:
      let type = ContentType(fileName: file.name)
      guard type != .html, let bytes = files.bytes(of: file.name) else { return nil }
      return PreencodedResponse(type: type, cache: .immutable, body: bytes)
    case .current:
      return files.current(file.name).map {
        Self.response(
          name: file.name, body: Self.placed($0, file.name, below: prefix), securityPolicy: securityPolicy)
      }
    }
  }

  static func isPage(_ name: String) -> Bool { name.hasSuffix(".html") }

  /// A page whose absolute paths begin with the prefix. Scripts find their place by their own address.
  private static func placed(_ body: ByteBuffer, _ name: String, below prefix: String) -> ByteBuffer {
    prefix.isEmpty || !isPage(name) ? body : body.replacing("=\"/", by: "=\"\(prefix)/")
  }

  /// The pages in place of others, with their status.
  private static let refusals: [String: HTTPResponseStatus] = [notFoundPage: .notFound, noAccessPage: .forbidden]

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
    if let status = refusals[name] {
      // Other clients get JSON at the same address.
      let headers = headers + [HeaderField("Vary", "Accept")]
      return PreencodedResponse(status: status, type: type, cache: .never, headers: headers, body: body)
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
    let body = head.tags.map { file.body.replacing(PageSharing.mark, by: $0) } ?? file.body
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
      "Content-Security-Policy",
      "default-src 'self'; media-src 'self' blob:; base-uri 'none'; form-action 'self'; frame-ancestors \(frameAncestors)"
    )
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
