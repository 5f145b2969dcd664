internal import Answers
internal import Base
internal import Delivery
internal import HTTP

/// Which page of a list is wanted: how many entries, and behind which one.
package struct ListPage: Sendable {
  /// Without `limit`.
  static let usual = 100
  package static let longest = 1000
  /// Bytes of `after`.
  private static let longestName = 256

  /// The last entry of the page before; nil for the first page.
  let after: String?
  let limit: Int

  static let parameters = [
    APIParameter("after", .text, "`next` of the page before."),
    APIParameter("limit", .wholeNumber(1...longest), "The length of the page; by default \(usual)."),
  ]

  init(_ request: HTTPRequest) throws(ValueError) {
    after = request.query("after")
    guard (after?.utf8.count ?? 0) <= Self.longestName else {
      throw ValueError("after is no entry of the list", advice: "use `next` of the page before")
    }
    guard let text = request.query("limit") else {
      limit = Self.usual
      return
    }
    guard let limit = Int(text), (1...Self.longest).contains(limit) else {
      throw ValueError("limit is not a number from 1 to \(Self.longest)", advice: "use such a number")
    }
    self.limit = limit
  }

  static func refusal(_ error: ValueError) -> HTTPAnswer {
    .now(
      Problem(.malformedQuery, "The query cannot be answered: \(error.reason).", help: "\(error.advice).").response)
  }
}
