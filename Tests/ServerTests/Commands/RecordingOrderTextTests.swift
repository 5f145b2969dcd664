import Answers
import NIOCore
import Recording
import RecordingFiles
@testable import Server
import Testing

@Suite struct RecordingOrderTextTests {
  private func body(_ order: RecordingOrderText) -> String? { order.json.map { String(buffer: $0) } }

  @Test func nothingOrderedIsNoBody() { #expect(body(RecordingOrderText()) == nil) }

  @Test func theServerReadsWhatIsOrdered() throws {
    let text = RecordingOrderText(name: "a \"b\"", tracks: "1,3", duration: "90m", size: "2GB")
    #expect(body(text) == #"{"name":"a \"b\"","tracks":[1,3],"limits":{"duration":"90m","bytes":"2GB"}}"#)
    let order = try RecordingBody.order(in: try #require(text.json))
    #expect(order.title?.description == "a \"b\"" && order.maximumBytes == 2_000_000_000)
    #expect(body(RecordingOrderText(tracks: "audio")) == #"{"tracks":"audio"}"#)
    #expect(throws: (any Error).self) {
      try RecordingBody.order(in: try #require(RecordingOrderText(tracks: "1,x").json))
    }
  }
}
