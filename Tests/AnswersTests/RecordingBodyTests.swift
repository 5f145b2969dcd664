@testable import Answers
import Base
import FMP4
import NIOCore
import Recording
import RecordingFiles
import Testing

/// What the body of a request for one recording says.
@Suite struct RecordingBodyTests {
  private static func order(_ text: String) throws -> RecordingOrder {
    try RecordingBody.order(in: ByteBuffer(string: text))
  }

  @Test func aBodyIsReadWholeAndAnEmptyOneAsksForNothing() throws {
    #expect(try Self.order("") == RecordingOrder())
    #expect(try Self.order("{}") == RecordingOrder())
    let all = #"{"name": "Ein Gespräch", "tracks": [2, 5], "limits": {"duration": "90m", "bytes": "2GB"}}"#
    let expected = RecordingOrder(
      title: try RecordingTitle("Ein Gespräch"), tracks: .numbers([TrackID(2), TrackID(5)]),
      maximumDuration: 5_400_000_000_000, maximumBytes: 2_000_000_000)
    #expect(try Self.order(all) == expected)
    #expect(try Self.order(#"{"tracks": "audio"}"#).tracks == .kind(.audio))
    #expect(try Self.order(#"{"tracks": "video", "name": null}"#).tracks == .kind(.video))
    #expect(try Self.order(#"{"tracks": "all"}"#).tracks == .all)
  }

  @Test(arguments: [
    "x", "[]", "1", #"{"name": 1}"#, #"{"tracks": [1.5]}"#, #"{"tracks": [-1]}"#, #"{"limits": "1h"}"#, "{",
  ])
  func aBodyOfAnotherFormIsMalformed(_ text: String) {
    #expect(throws: RecordingBody.Malformed.self) { try Self.order(text) }
  }

  @Test(arguments: [
    (#"{"title": "a"}"#, "there is no member \"title\""),
    (#"{"limits": {"files": 1}}"#, "there is no member \"files\""),
    (#"{"name": ""}"#, "name: it has 0 bytes"), (#"{"name": "a/b"}"#, "name: it has a control"),
    (#"{"name": "a\nb"}"#, "name: it has a control"), (#"{"name": "  "}"#, "name: it is blank"),
    (#"{"tracks": "sound"}"#, "tracks: that is no choice"), (#"{"tracks": []}"#, "tracks: the list is empty"),
    (#"{"tracks": [1, 1]}"#, "tracks: the list is empty"),
    (#"{"limits": {"duration": "9"}}"#, "limits.duration: a duration"),
    (#"{"limits": {"duration": "10ms"}}"#, "limits.duration: 10ms is not"),
    (#"{"limits": {"bytes": "0"}}"#, "limits.bytes: 0"),
    (#"{"limits": {"bytes": "many"}}"#, "limits.bytes: that is not"),
  ])
  func aValueThatCannotBeIsNamed(_ text: String, _ reason: String) throws {
    let error = #expect(throws: ValueError.self) { try Self.order(text) }
    #expect(error?.reason.hasPrefix(reason) == true, "\(error?.reason ?? "")")
  }
}
