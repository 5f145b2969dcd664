internal import Basics
internal import Ingest

/// An event as the API tells it, for the command line.
struct EventLine: Decodable {
  let id: Int64
  let kind: String
  let stream: String?
  let who: String?
  let at: String
  let data: EventValue

  var cells: [String?] { ["\(id)", at, kind, stream, who, data.json] }

  /// One line with tabs, as a row of `TextTable`.
  var text: String { cells.map { $0.map { LogText.escaped($0) } ?? "-" }.joined(separator: "\t") }
}

/// A page of events.
struct EventsPage: Decodable {
  let events: [EventLine]
  /// Events that the client asked for and that are not kept any more.
  let gap: Gap?
  let more: Bool
  let next: Int64

  struct Gap: Decodable {
    let after: Int64
    let from: Int64
  }
}

extension EventValue: Decodable {
  /// Members are sorted: decoders keep no order.
  init(from decoder: any Decoder) throws {
    if let members = try? decoder.container(keyedBy: AnyKey.self) {
      self = .object(
        try members.allKeys.sorted { $0.stringValue < $1.stringValue }.map { key in
          Member(name: key.stringValue, value: try members.decode(EventValue.self, forKey: key))
        })
      return
    }
    let one = try decoder.singleValueContainer()
    if one.decodeNil() {
      self = .null
    } else if let flag = try? one.decode(Bool.self) {
      self = .flag(flag)
    } else if let number = try? one.decode(Int64.self) {
      self = .whole(number)
    } else if let number = try? one.decode(Double.self) {
      self = .number(number)
    } else if let text = try? one.decode(String.self) {
      self = .text(text)
    } else {
      self = .list(try one.decode([EventValue].self))
    }
  }
}
