internal import AsyncHTTPClient
package import Base
internal import NIOCore

/// The address of a key set. One request, without redirections, is answered within a time and a size, or fails.
package struct JSONWebKeySetAddress: Sendable, Hashable {
  static let patience = Duration.seconds(5)

  private let url: String

  /// An https address, or an http address of this machine. Nil for a file's name.
  package init?(parsing text: String) throws(ValueError) {
    guard text.contains("://") else { return nil }
    let isOfThisMachine = ["http://127.0.0.1", "http://[::1]", "http://localhost"].contains { host in
      guard text.hasPrefix(host) else { return false }
      return text.dropFirst(host.count).first.map { [":", "/"].contains($0) } ?? true
    }
    guard text.hasPrefix("https://") || isOfThisMachine else {
      throw ValueError("that is no https address", advice: "write https://issuer.example/jwks.json, or name a file")
    }
    guard (try? HTTPClient.Request(url: text)) != nil, !text.contains("@") else {
      throw ValueError("that is no usable address", advice: "write https://issuer.example/jwks.json")
    }
    url = text
  }

  func fetch() async throws(ValueError) -> [JSONWebKey] {
    let answer: OutgoingRequest.Answer
    do throws(OutgoingRequest.Failure) {
      answer = try await OutgoingRequest(url: url, patience: Self.patience).send()
    } catch {
      throw ValueError("the request failed: \(error)", advice: "check the address and the network")
    }
    guard answer.status == 200 else {
      throw ValueError("the status is \(answer.status)", advice: "name the address that has the set itself")
    }
    guard let body = answer.body else {
      throw ValueError(
        "it has more than \(OutgoingRequest.longestAnswer >> 10) KiB, or did not end within"
          + " \(DurationText.text(Self.patience))", advice: "check the address")
    }
    return try JSONWebKeySet.keys(in: Array(body.readableBytesView))
  }
}
