@testable import API
import Delivery
import Glibc
@testable import HTTP
import NIOCore
import NIOHTTP1
import NIOPosix
import ServerSupport
import Storage
import Streams
import Testing

@Suite(.timeLimit(.minutes(3))) struct HTTPWebFilesTests {
  @Test func embeddedPagesCarryTheirPolicyAndAnswer304() async throws {
    let files = WebFiles()
    try await HTTPTestServer.run(
      route: { request, loop in files.answer(request.path, to: request, on: loop) },
      { address, _ in
        let client = try await HTTPRawClient.connect(to: address)
        let page = try await client.get("/pages/index.html")
        #expect(page.status == 200)
        #expect(page["Content-Type"] == "text/html; charset=utf-8")
        #expect(page["Cache-Control"] == "no-cache")
        #expect(
          page["Content-Security-Policy"]
            == "default-src 'self'; media-src 'self' blob:; base-uri 'none'; form-action 'self'; frame-ancestors 'self'"
        )
        #expect(page.text.contains("weir"))
        #expect(try await client.get("/pages/index.html", "If-None-Match: \(try #require(page["ETag"]))").status == 304)
        #expect(try await client.get("/none.html").status == 404)
        let refused = try await client.get("/pages/index.html", method: "DELETE")
        #expect(refused.status == 405)
        #expect(refused["Allow"] == "GET, HEAD, OPTIONS")
        await client.close()
      })
  }

  @Test func cameraMicrophoneAndScreenAreForThePublishPageAlone() async throws {
    let files = WebFiles()
    try await HTTPTestServer.run(
      route: { request, loop in files.answer(request.path, to: request, on: loop) },
      { address, _ in
        let client = try await HTTPRawClient.connect(to: address)
        for page in ["index", "watch", "embed", "recordings", "not-found", "no-access", "publish"] {
          let allowed = page == "publish" ? "(self)" : "()"
          #expect(
            try await client.get("/pages/\(page).html")["Permissions-Policy"]
              == "camera=\(allowed), microphone=\(allowed), display-capture=\(allowed)", "\(page)")
        }
        await client.close()
      })
  }

  @Test func whoMayNotWatchSeesAPageAndAProgramReadsWhy() async throws {
    let sharing = PageSharing(
      publicURL: nil, settings: { _ in StreamSettings() }, embedders: { ["https://site.example"] })
    let pages = PageRoutes(files: WebFiles(), sharing: sharing)
    let refusal = Problem(.viewerNotAllowed, "The token has expired.").response
    try await HTTPTestServer.run(
      route: { request, loop in
        // A token whose key has to be fetched is judged later.
        let isLate = request.query("late") != nil
        let answer = isLate ? HTTPAnswer.later(loop.makeSucceededFuture(refusal)) : .now(refusal)
        return pages.explaining(request, on: loop, answer)
      },
      { address, _ in
        let client = try await HTTPRawClient.connect(to: address)
        for (path, ancestors) in [("/watch/cam", "'self'"), ("/embed/cam", "'self' https://site.example")] {
          for query in ["", "?late"] {
            let page = try await client.get(path + query, "Accept: text/html,*/*")
            #expect(page.status == 403 && page["Content-Type"] == "text/html; charset=utf-8", "\(path)\(query)")
            #expect(page.text.contains("/pages/no-access.js") && page["Cache-Control"] == "no-store")
            #expect(page["Content-Security-Policy"]?.hasSuffix("frame-ancestors \(ancestors)") == true)
            let problem = try await client.get(path + query)
            #expect(problem.status == 403 && problem.text.contains("The token has expired."))
            #expect(problem["Vary"]?.contains("Accept") == true)
          }
        }
        // Caches keep one answer for players and browsers there.
        let media = try await client.get("/live/cam/index.m3u8", "Accept: text/html")
        #expect(media.text.contains("The token has expired."))
        await client.close()
      })
  }

  @Test func scriptsHaveAnAddressOfTheirBuildAndAreKept() async throws {
    let files = WebFiles()
    try await HTTPTestServer.run(
      route: { request, loop in files.answer(request.path, to: request, on: loop) },
      { address, _ in
        let client = try await HTTPRawClient.connect(to: address)
        for page in ["index", "watch", "publish", "embed", "recordings", "not-found", "no-access"] {
          let text = try await client.get("/pages/\(page).html").text
          let addresses = text.split(separator: "\"").filter { $0.hasPrefix("/web/") }.map { $0.dropFirst(4) }
          #expect(addresses.count > 3)
          for address in addresses {
            let file = String(address.prefix { $0 != "#" })
            let answer = try await client.get(file)
            #expect(answer.status == 200, "\(file)")
            #expect(answer["Cache-Control"] == "public, max-age=31536000, immutable", "\(file)")
            // A page of the build before goes on with what there is now.
            let former = try await client.get("/build-0" + file.drop { $0 == "/" }.drop { $0 != "/" })
            #expect(former.status == 200, "\(file)")
            #expect(former["Cache-Control"] == "no-cache", "\(file)")
            #expect(former["ETag"] == answer["ETag"])
          }
        }
        #expect(try await client.get("/build-0/pages/none.js").status == 404)
        await client.close()
      })
  }

  @Test func theEntryForOtherSitesStaysAndNamesTheBuild() async throws {
    let files = WebFiles()
    try await HTTPTestServer.run(
      route: { request, loop in files.answer(request.path, to: request, on: loop) },
      { address, _ in
        let client = try await HTTPRawClient.connect(to: address)
        let entry = try await client.get("/weir-player.js")
        #expect(entry["Cache-Control"] == "no-cache")
        let imports = entry.text.split(separator: "\"").filter { $0.hasPrefix("./") }.map { $0.dropFirst() }
        #expect(imports.count > 20)
        for address in imports {
          #expect(address.hasPrefix("/build-"))
          let script = try await client.get(String(address))
          #expect(script["Cache-Control"] == "public, max-age=31536000, immutable", "\(address)")
        }
        await client.close()
      })
  }

  @Test func aPageGetsTheHeadOfItsRequest() async throws {
    let files = WebFiles()
    let head = PageHead(tags: "<title>Mine</title>", frameAncestors: "https://a.example")
    try await HTTPTestServer.run(
      route: { request, loop in files.answer(request.path, to: request, on: loop, with: head) },
      { address, _ in
        let client = try await HTTPRawClient.connect(to: address)
        let page = try await client.get("/pages/embed.html")
        #expect(page.text.contains("<title>Mine</title>") && !page.text.contains(PageSharing.mark))
        #expect(try #require(page["Content-Security-Policy"]).hasSuffix("frame-ancestors https://a.example"))
        #expect(try await client.get("/pages/embed.html", "If-None-Match: \(try #require(page["ETag"]))").status == 304)
        #expect(try await client.get("/pages/not-found.html").status == 404)
        await client.close()
      })
  }

  /// A response is compressed once, on an event loop, so it must not be made for each request.
  @Test func filesAndPagesAreMadeOnce() throws {
    let files = WebFiles()
    let head = PageHead(tags: "<title>Mine</title>", frameAncestors: "'self'")
    func response(_ path: [String], _ head: PageHead?) throws -> PreencodedResponse {
      let request = HTTPRequest(method: .get, target: RequestTarget(segments: path))
      let answer = files.answer(path, to: request, on: NIOSingletons.posixEventLoopGroup.any(), with: head)
      guard case .now(let response) = answer.kind, case .preencoded(let cached) = response.body else {
        throw ChannelError.inappropriateOperationForState
      }
      return cached
    }
    let watch = ["pages", "watch.html"]
    let asked: [([String], PageHead?)] = [(["ui", "style.css"], nil), (watch, nil), (watch, head)]
    for (path, head) in asked {
      let first = try response(path, head)
      #expect(try response(path, head) === first, "\(path)")
    }
    #expect(try response(watch, head) !== response(watch, nil))
  }

  /// The fields for another site are added to the compressed form that is there, and nothing is compressed again.
  @Test func otherSitesGetThePreparedForm() throws {
    let origins = CrossOrigin(origins: [], embedders: ["https://a.example"])
    let script = String(repeating: "let a = 1\n", count: 1000)
    let cached = PreencodedResponse(type: .javascript, cache: .immutable, body: ByteBuffer(string: script))
    let request = HTTPRequest(
      method: .get, target: RequestTarget(segments: ["web", "a.js"]),
      fields: .list(["Origin": "https://a.example", "Accept-Encoding": "gzip"]))
    let prepared = cached.parts(acceptsGzip: true)
    try #require(prepared.body.readableBytes < script.utf8.count)
    for _ in 0..<2 {
      let response = origins.applied(to: HTTPResponse(cached), of: request)
      guard case .complete(let head, let pieces) = ResponsePlan(response, to: request) else {
        Issue.record("a complete response")
        continue
      }
      #expect(head.fields.filter { $0.name == "Content-Encoding" }.map(\.value) == ["gzip"])
      #expect(head.fields.filter { $0.name == "Vary" }.map(\.value) == ["Accept-Encoding", "Origin"])
      #expect(head.fields.contains { $0.name == "Access-Control-Allow-Origin" && $0.value == "https://a.example" })
      guard case .bytes(let bytes)? = pieces.first, pieces.count == 1 else {
        Issue.record("one piece")
        continue
      }
      #expect(bytes == prepared.body)
      // The same storage: it is neither copied nor made anew.
      #expect(address(bytes) == address(prepared.body))
    }
  }

  private func address(_ bytes: ByteBuffer) -> UnsafeRawPointer? { bytes.withUnsafeReadableBytes { $0.baseAddress } }

  @Test func aFolderIsServedInTheirPlaceAsItIsNow() async throws {
    var path = Array("/tmp/weir-web-XXXXXX".utf8CString)
    try #require(mkdtemp(&path) != nil)
    let folder = String(decoding: path.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    let name = folder + "/a.js"
    defer {
      unlink(name)
      rmdir(folder)
    }
    let files = WebFiles(folder: folder)
    try await HTTPTestServer.run(
      route: { request, loop in files.answer(request.path, to: request, on: loop) },
      { address, _ in
        let client = try await HTTPRawClient.connect(to: address)
        #expect(try await client.get("/a.js").status == 404)
        for text in ["let a = 1\n", "let b = 22\n"] {
          let descriptor = open(name, O_CREAT | O_TRUNC | O_WRONLY, 0o600)
          try #require(descriptor >= 0)
          try #require(Glibc.write(descriptor, text, text.utf8.count) == text.utf8.count)
          close(descriptor)
          let response = try await client.get("/a.js")
          #expect(response.text == text)
          #expect(response["Content-Type"] == "text/javascript; charset=utf-8")
        }
        await client.close()
      })
  }
}
