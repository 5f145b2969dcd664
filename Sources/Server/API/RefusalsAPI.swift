internal import Basics
internal import HTTP
internal import Ingest
internal import NIOCore
internal import NIOHTTP1

/// `/api/v1/refusals`: the publications that were refused lately and why, the newest first. With the admin token all of
/// them, with their addresses. Without it those of the name that `stream` gives, without: who mistypes puts keys where names
/// belong, so names are no list for everybody, but where no keys are set.
struct RefusalsAPI {
  let streams: StreamRegistry
  let gate: AdminGate
  let publishKeyRequired: Bool

  func list(_ request: APIRequest) -> HTTPAnswer {
    let name = request.http.query("stream")
    let refusal = gate.refusal(of: request.http)
    if let refusal, name == nil, publishKeyRequired { return .now(refusal.response) }
    let entries = streams.recentRefusals.reversed().filter { name == nil || $0.refused.stream == name }
    return .now(.json(["refusals": .array(entries.map { describe($0, isForAdmin: refusal == nil) })]))
  }

  private func describe(_ entry: RecentRefusals.Entry, isForAdmin: Bool) -> JSON {
    let refused = entry.refused
    return [
      "stream": refused.stream.map { .string($0) } ?? .null, "protocol": .string(refused.protocolName),
      "address": isForAdmin ? .string(refused.remoteAddress) : .null,
      "reason": .string(isForAdmin ? refused.reason : refused.publicReason), "count": .integer(entry.count),
      "firstAt": .string(UTCText(nanosecondsSince1970: entry.first).internet),
      "lastAt": .string(UTCText(nanosecondsSince1970: entry.last).internet),
    ]
  }
}
