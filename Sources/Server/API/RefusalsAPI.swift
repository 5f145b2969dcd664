internal import Answers
internal import Control
internal import Delivery
internal import HTTP
internal import NIOCore
internal import NIOHTTP1
internal import Publishing
internal import Streams

/// `/api/v1/refusals`: the publications refused recently, with reasons, the newest first. With the admin token: all of them, with
/// addresses. Without it: those of the name in `stream`, without addresses. Publishers may type a key in place of the name. Names
/// are therefore listed without the token only where no keys are configured.
struct RefusalsAPI {
  let streams: StreamRegistry
  let gate: AdminGate
  let publishKeyRequired: Bool

  func list(_ request: APIRequest) -> HTTPAnswer {
    let name = request.http.query("stream")
    let refusal = gate.refusal(of: request.http, needing: .read)
    if let refusal, name == nil, publishKeyRequired { return .now(refusal.response) }
    let entries = streams.recentRefusals.reversed().filter { entry in
      (name == nil || entry.refused.stream == name)
        && (refusal == nil || entry.refused.stream.flatMap { StreamName($0) }.map(request.viewer.maySee) ?? true)
    }
    return .now(.json(RefusalsAnswer(refusals: entries.map { .init($0, isForAdmin: refusal == nil) })))
  }

}

/// `/api/v1/refusals`
struct RefusalsAnswer: APIObject {
  let refusals: [Refusal]

  struct Refusal: APIObject {
    let stream: String?
    let `protocol`: String
    /// Null without the admin token.
    let address: String?
    let reason: String
    let count: Int
    let firstAt: String
    let lastAt: String

    static let notes: [String: FieldNote] = [
      "stream": "The requested name; null if none was.",
      "address": "Null without the admin token.",
      "count": "How often it was refused for this reason.",
      "firstAt": .time("The first time."),
      "lastAt": .time("The last time."),
    ]

    init(_ entry: RecentRefusals.Entry, isForAdmin: Bool) {
      let refused = entry.refused
      (stream, `protocol`, count) = (refused.stream, refused.protocolName, entry.count)
      address = isForAdmin ? refused.remoteAddress : nil
      reason = isForAdmin ? refused.reason : refused.publicReason
      (firstAt, lastAt) = (JSONText.time(entry.first), JSONText.time(entry.last))
    }
  }
}
