package import Base
internal import FMP4
internal import HTTP
internal import Publishing
internal import RecordingFiles

extension CatalogueQuery {
  /// `?stream=&from=&to=&state=&sort=&limit=&cursor=`; a missing or empty value does not restrict the query.
  init(_ request: HTTPRequest) throws(ValueError) {
    func value(_ name: String) -> String? { request.query(name).flatMap { $0.isEmpty ? nil : $0 } }
    try self.init(stream: value("stream"), state: value("state"))
    from = try value("from").map { text throws(ValueError) in try Self.time(text, "from") }
    to = try value("to").map { text throws(ValueError) in try Self.time(text, "to") }
    if let text = value("sort") {
      guard let order = Order(rawValue: text) else {
        let words = Order.allCases.map(\.rawValue).joined(separator: ", ")
        throw ValueError("there is no order of that name", advice: "Use one of \(words).")
      }
      self.order = order
    }
    if let text = value("limit") {
      guard let limit = Int(text), (1...Self.maximumLimit).contains(limit) else {
        throw ValueError("limit is not between 1 and \(Self.maximumLimit)", advice: "Leave it out for \(limit).")
      }
      self.limit = limit
    }
    if let text = value("cursor") {
      guard let cursor = CatalogueCursor(text),
        (cursor.measure == nil) == (order == .newest || order == .oldest)
      else {
        throw ValueError("cursor was not given by this server", advice: "Take it from \"next\" of a page.")
      }
      after = cursor
    }
  }

  /// Restricts the query to one stream or one state, where given.
  package init(stream: String?, state: String?) throws(ValueError) {
    self.init()
    if let stream {
      guard let name = StreamName(stream) else {
        throw ValueError("stream is not a valid stream name", advice: "Write one as \(StreamName.grammar).")
      }
      self.stream = name
    }
    if let state { selection = try Self.selection(state) }
  }

  private static func time(_ text: String, _ name: String) throws(ValueError) -> WallTime {
    guard let time = UTCText.read(text) else {
      throw ValueError("\(name) is not a time", advice: "Write it as 2026-11-21T07:24:10Z.")
    }
    return time
  }

  private static func selection(_ text: String) throws(ValueError) -> Selection {
    if text == "deleted" { return .deleted }
    guard let state = RecordingEntry.State(rawValue: text) else {
      throw ValueError("there is no state of that name", advice: "Use running, completed, failed or deleted.")
    }
    return .state(state)
  }
}
