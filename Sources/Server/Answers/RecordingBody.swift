internal import Base
internal import FMP4
internal import FoundationEssentials
package import NIOCore
package import Recording
internal import RecordingFiles

/// The body of a request that starts a recording, a JSON object: `{"name": "Interview", "tracks": "audio", "limits":
/// {"duration": "90m", "bytes": "2GB"}}`. No member is required, and no other is allowed. No body is an empty object.
package struct RecordingBody: Decodable {
  /// It is no JSON object with these members.
  struct Malformed: Error {}

  private let name: String?
  private let tracks: Tracks?
  private let limits: Limits?

  private enum Tracks: Decodable {
    case word(String)
    case numbers([UInt32])

    init(from decoder: any Decoder) throws {
      let value = try decoder.singleValueContainer()
      self =
        if let word = try? value.decode(String.self) { .word(word) } else { .numbers(try value.decode([UInt32].self)) }
    }
  }

  private struct Limits: Decodable {
    let duration: String?
    let bytes: String?

    private enum CodingKeys: String, CodingKey, CaseIterable { case duration, bytes }

    init(from decoder: any Decoder) throws {
      try RecordingBody.check(decoder, CodingKeys.allCases.map(\.rawValue))
      let values = try decoder.container(keyedBy: CodingKeys.self)
      duration = try values.decodeIfPresent(String.self, forKey: .duration)
      bytes = try values.decodeIfPresent(String.self, forKey: .bytes)
    }
  }

  private enum CodingKeys: String, CodingKey, CaseIterable { case name, tracks, limits }

  package init(from decoder: any Decoder) throws {
    try Self.check(decoder, CodingKeys.allCases.map(\.rawValue))
    let values = try decoder.container(keyedBy: CodingKeys.self)
    name = try values.decodeIfPresent(String.self, forKey: .name)
    tracks = try values.decodeIfPresent(Tracks.self, forKey: .tracks)
    limits = try values.decodeIfPresent(Limits.self, forKey: .limits)
  }

  private static func check(_ decoder: any Decoder, _ known: [String]) throws {
    let keys = try decoder.container(keyedBy: AnyKey.self).allKeys
    if let other = keys.first(where: { !known.contains($0.stringValue) }) {
      throw ValueError(
        "there is no member \"\(LogText.escaped(other.stringValue))\"", advice: "use \(known.joined(separator: ", "))")
    }
  }

  /// What a body orders. Throws `Malformed` or a `ValueError`.
  package static func order(in body: ByteBuffer) throws -> RecordingOrder {
    if body.readableBytes == 0 { return RecordingOrder() }
    do {
      return try JSONDecoder().decode(RecordingBody.self, from: Data(body.readableBytesView)).order
    } catch is DecodingError {
      throw Malformed()
    }
  }

  private var order: RecordingOrder {
    get throws {
      var order = RecordingOrder()
      order.title = try name.map { name in try Self.told("name") { () throws(ValueError) in try RecordingTitle(name) } }
      order.tracks = try Self.told("tracks") { () throws(ValueError) in try choice }
      order.maximumDuration = try limits?.duration.map { text in
        try Self.told("limits.duration") { () throws(ValueError) in
          let limit = try DurationText.parse(text)
          guard Self.durations.contains(limit) else {
            throw ValueError("\(text) is not 1s to 366d", advice: "write 90m")
          }
          return limit.wholeMilliseconds &* 1_000_000
        }
      }
      order.maximumBytes = try limits?.bytes.map { text in
        try Self.told("limits.bytes") { () throws(ValueError) in
          let limit = try ByteSizeText.parse(text)
          guard limit > 0 else { throw ValueError("0 is no limit", advice: "leave it out for no limit") }
          return UInt64(limit)
        }
      }
      return order
    }
  }

  private static let durations = Duration.seconds(1) ... .seconds(366 * 86_400)

  private static let advice = "use all, audio, video or a list of track numbers"

  private var choice: TrackChoice {
    get throws(ValueError) {
      switch tracks {
      case nil, .word("all"): return .all
      case .word("audio"): return .kind(.audio)
      case .word("video"): return .kind(.video)
      case .word: throw ValueError("that is no choice of tracks", advice: Self.advice)
      case .numbers(let numbers):
        guard !numbers.isEmpty, Set(numbers).count == numbers.count else {
          throw ValueError("the list is empty or has a number twice", advice: Self.advice)
        }
        return .numbers(Set(numbers.map { TrackID($0) }))
      }
    }
  }

  /// Puts the member's name before the reason.
  private static func told<Value>(_ member: String, _ read: () throws(ValueError) -> Value) throws(ValueError) -> Value
  {
    do throws(ValueError) {
      return try read()
    } catch {
      throw ValueError("\(member): \(error.reason)", advice: error.advice)
    }
  }
}

/// The same for the API's description.
package struct RecordingRequest: APIObject {
  let name: String?
  let tracks: String?
  let limits: Limits?

  struct Limits: APIObject {
    let duration: String?
    let bytes: String?

    static let notes: [String: FieldNote] = ["duration": "`90m`; 1s to 366d.", "bytes": "`2GB`."]
  }

  package static let notes: [String: FieldNote] = [
    "name": "Name of the recording and of its download.",
    "tracks": .words(["all", "audio", "video"], "Which tracks are recorded; also a list of track numbers."),
  ]
}
