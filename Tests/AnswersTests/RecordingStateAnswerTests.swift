@testable import Answers
import NIOCore
@testable import Recording
import RecordingFiles
import Testing

@Suite struct RecordingStateAnswerTests {
  @Test func theStateIsToldWithItsReason() {
    var progress = RecordingProgress(file: "cam/20261121T072410Z.mp4", bytes: 5, seconds: 1)
    progress.gaps = [RecordingGap(at: 0.5, seconds: 3, reason: "away")]
    func told(_ state: RecordingState, warning: String? = nil) -> String {
      String(buffer: JSONText.encode(RecordingStateAnswer(state, warning: warning)))
    }
    #expect(
      told(.failed(progress, reason: "disk full"))
        == #"{"bytes":5,"file":"cam/20261121T072410Z.mp4","gaps":[{"at":0.5,"reason":"away","seconds":3}],"#
        + #""reason":"disk full","seconds":1,"state":"failed"}"#)
    #expect(told(.idle) == #"{"bytes":0,"file":null,"gaps":[],"reason":null,"seconds":0,"state":"idle"}"#)
    #expect(told(.running(progress), warning: "slow").contains(#""reason":"slow""#))
  }
}
