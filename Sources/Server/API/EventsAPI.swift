internal import Answers
internal import Base
package import Control
internal import Delivery
internal import HTTP
internal import NIOCore
internal import NIOHTTP1
internal import Publishing

/// `/api/v1/events`: what happened, as a stream of events or as a page.
package struct EventsAPI: Sendable {
  let log: EventLog
  let hooks: Hooks
  let streams = EventStreams()

  package init(log: EventLog, hooks: Hooks) {
    (self.log, self.hooks) = (log, hooks)
  }

  static let usualPage = 100
  static let longestPage = 1000

  func list(_ request: APIRequest) -> HTTPAnswer {
    do throws(ValueError) {
      let filter = try Self.filter(request.http)
      return .now(
        try Self.wantsStream(request.http) ? stream(request.http, filter) : page(request.http, filter))
    } catch {
      return .now(
        Problem(.malformedQuery, "The query cannot be answered: \(error.reason).", help: error.advice).response)
    }
  }

  private static func wantsStream(_ request: HTTPRequest) -> Bool {
    request.headers("Accept").contains { $0.lowercased().contains(eventStream) }
  }

  private static let eventStream = "text/event-stream"

  // MARK: As a stream

  private func stream(_ request: HTTPRequest, _ filter: EventFilter) throws(ValueError) -> HTTPResponse {
    // A browser that reconnects repeats the address, with its last event in the field.
    let last = request.header("Last-Event-ID").flatMap { $0.isEmpty ? nil : $0 }
    let position: Int64
    if let last {
      // After a clock was set back, or a state folder was removed, the client knows a newer event than there is.
      position = min(try Self.id(last, "Last-Event-ID"), log.newestID)
    } else {
      position = try after(request) ?? log.newestID
    }
    guard let place = streams.take(request.client) else {
      return Problem(
        .tooManyEventStreams,
        "At most \(EventStreams.limit) streams of events are open at a time, \(EventStreams.limitPerAddress) of an address.",
        help: "Close one, or ask for pages.", retryAfter: 10
      ).response
    }
    return HTTPResponse(
      headers: [
        HeaderField("Content-Type", Self.eventStream), HeaderField("Cache-Control", CachePolicy.never.value),
        // nginx would keep events until its buffer is full.
        HeaderField("X-Accel-Buffering", "no"),
      ], body: .live(EventStreamBody(log: log, after: position, filter, place: place)))
  }

  // MARK: As a page

  private func page(_ request: HTTPRequest, _ filter: EventFilter) throws(ValueError) -> HTTPResponse {
    let limit = try Self.limit(request)
    let after = try after(request)
    let page = after.map { log.page(after: $0, limit: limit, filter) } ?? log.newest(limit, filter)
    let gap = page.gapUntil.map { #"{"after":\#(after ?? 0),"from":\#($0)}"# } ?? "null"
    return .json(
      text: ByteBuffer(
        string: #"{"durable":\#(log.isDurable),"events":[\#(page.events.map(\.json).joined(separator: ","))],"#
          + #""gap":\#(gap),"more":\#(page.isMore),"next":\#(page.through)}"#))
  }

  // MARK: The query

  /// The event that the client has; nil if it names none.
  private func after(_ request: HTTPRequest) throws(ValueError) -> Int64? {
    guard let text = request.query("after") else { return nil }
    let id = try Self.id(text, "after")
    let newest = log.newestID
    guard id <= newest else {
      throw ValueError(
        "there is no event \(id) yet; the newest is \(newest)", advice: "use the id of an event that came")
    }
    return id
  }

  private static func id(_ text: String, _ name: String) throws(ValueError) -> Int64 {
    guard text.utf8.count <= 19, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let id = Int64(text) else {
      throw ValueError(
        "\(name) is not the id of an event", advice: "use the id of an event, or 0 for all that are kept")
    }
    return id
  }

  private static func limit(_ request: HTTPRequest) throws(ValueError) -> Int {
    guard let text = request.query("limit") else { return usualPage }
    guard let limit = Int(text), (1...longestPage).contains(limit) else {
      throw ValueError("limit is not a number from 1 to \(longestPage)", advice: "use such a number")
    }
    return limit
  }

  private static func filter(_ request: HTTPRequest) throws(ValueError) -> EventFilter {
    var filter = EventFilter()
    if let text = request.query("stream") {
      let pattern = try StreamPattern(parsing: text)
      filter.streams = { name in name.flatMap { StreamName($0) }.map { pattern.matches($0) } ?? false }
    }
    if let text = request.query("kind") {
      var kinds = EventKinds()
      for word in text.split(separator: ",", maxSplits: 32) {
        guard kinds.add(String(word)) else {
          throw ValueError(
            "kind has a word that is no kind of event",
            advice: "use \(EventKinds.words.joined(separator: ", ")), or recording.*")
        }
      }
      filter.kinds = kinds
    }
    return filter
  }
}
