import Delivery
@testable import HTTP
import NIOHTTP1
import Testing

@Suite struct CrossOriginTests {
  private static let studio = "https://studio.example"

  /// The fields for other origins in the response to OPTIONS, or to a request that was served.
  private func fields(
    _ origins: [String], _ origin: String?, path: [String] = ["whip", "cam"], _ method: HTTPRequest.Method = .options
  ) -> [String: String] {
    let request = HTTPRequest(
      method: method, target: RequestTarget(segments: path),
      fields: .list(HTTPHeaders(origin.map { [("Origin", $0)] } ?? [])))
    let response =
      method == .options ? WebRTCSessions.options(of: request) : HTTPResponse(status: .created, headers: [])
    let applied = CrossOrigin(origins: origins).applied(to: response, of: request)
    return Dictionary(applied.headers.map { ($0.name, $0.value) }) { first, _ in first }
  }

  @Test func pagesOfNamedOriginsMayPublishAndReadTheirSession() {
    for path in [["whip", "cam"], ["whip", "cam", "0123"]] {
      let asked = fields([Self.studio], Self.studio, path: path)
      #expect(asked["Access-Control-Allow-Origin"] == Self.studio && asked["Vary"] == "Origin")
      let methods = path.count == 2 ? "POST, OPTIONS" : "PATCH, DELETE, OPTIONS"
      #expect(asked["Access-Control-Allow-Methods"] == methods && asked["Allow"] == methods)
      #expect(asked["Access-Control-Allow-Headers"] == "Authorization, Content-Type, If-Match")
      #expect(asked[path.count == 2 ? "Accept-Post" : "Accept-Patch"] != nil)
    }
    let made = fields([Self.studio, "*"], Self.studio, .post)
    #expect(made["Access-Control-Allow-Origin"] == Self.studio)
    for name in ["Location", "ETag", "Link"] {
      #expect(made["Access-Control-Expose-Headers"]?.contains(name) == true, "\(name)")
    }
  }

  @Test(arguments: [
    nil, "https://other.example", "null", "*", "http://studio.example", "https://studio.example:8443",
    "https://STUDIO.example", "https://studio.example.evil.example", "",
  ])
  func othersStayOut(origin: String?) {
    for origins in [[], ["*"], [Self.studio], [Self.studio, "*"], ["null"]] {
      for method in [HTTPRequest.Method.options, .post] {
        let found = fields(origins, origin, method).keys.filter { $0.hasPrefix("Access-Control-") }
        #expect(found.isEmpty, "\(origins) \(found)")
      }
      #expect(!CrossOrigin(origins: origins).mayPublish(origin ?? ""))
    }
  }

  @Test func whatAllOriginsMayReadStaysSo() {
    let found = fields([], "https://other.example", path: ["whep", "cam"])
    #expect(found["Access-Control-Allow-Origin"] == "*" && found["Access-Control-Allow-Methods"] == "POST, OPTIONS")
    #expect(fields(["*"], "https://other.example", path: ["api", "v1"], .get)["Access-Control-Allow-Origin"] == "*")
  }
}
