import Answers
@testable import API
import Base
import Delivery
import FoundationEssentials
import HTTP
import NIOHTTP1
import Testing

/// The description of the API. End-to-end tests hold it against real answers.
@Suite struct OpenAPIDocumentTests {
  private static let folder = "/" + "\(#filePath)".split(separator: "/").dropLast(3).joined(separator: "/")

  @Test(arguments: APITable.routes.map(\.pattern)) func eachRouteIsDescribed(pattern: String) throws {
    for route in APITable.routes where route.pattern == pattern {
      #expect(!route.summary.isEmpty)
      for segment in pattern.split(separator: "/") where segment.hasPrefix("{") {
        #expect(APIPlace.all.contains { segment == "{\($0.name)}" }, "APIPlace.all has no \(segment)")
      }
      #expect(Set(route.query.map(\.name)).count == route.query.count)
      for kind in OpenAPIDocument.kinds(of: route) { #expect(ProblemKind.all.contains(kind), "\(kind.code)") }
      for address in OpenAPIDocument.addresses(of: pattern) {
        #expect(OpenAPIDocument.text.contains("\"\(address)\": {"))
      }
    }
  }

  @Test func wordsOfAnAddressAreAddressesOfTheirOwn() {
    #expect(
      OpenAPIDocument.addresses(of: "/a/{stream}/start|stop") == ["/a/{stream}/start", "/a/{stream}/stop"])
  }

  @Test func allReferencesLeadSomewhere() {
    let text = OpenAPIDocument.text
    let references = text.split(separator: "\"$ref\": \"#/components/").dropFirst().compactMap {
      $0.split(separator: "\"").first?.split(separator: "/").last
    }
    #expect(references.count > 20)
    for name in Set(references) { #expect(text.contains("\"\(name)\": {"), "\(name)") }
  }

  // MARK: Problems

  @Test func eachCodeStandsInTheListOnce() throws {
    let codes = ProblemKind.all.map(\.code)
    #expect(Set(codes).count == codes.count)
    var written: Set<String> = []
    for file in try FileManager.default.subpathsOfDirectory(atPath: Self.folder + "/Sources/Server")
    where file.hasSuffix(".swift") {
      let text = try String(contentsOfFile: "\(Self.folder)/Sources/Server/\(file)", encoding: .utf8)
      for piece in text.split(separator: "= ProblemKind(").dropFirst() {
        written.insert(String(piece.split(separator: "\"", omittingEmptySubsequences: false)[1]))
      }
    }
    #expect(written == Set(codes))
  }

  @Test func aCodeIsWordsWithHyphens() {
    for kind in ProblemKind.all {
      #expect(kind.code.allSatisfy { $0 == "-" || ("a"..."z").contains($0) }, "\(kind.code)")
      #expect(kind.meaning.hasSuffix(".") && kind.status.code >= 400, "\(kind.code)")
    }
  }
}
