import Base
import HTTP
import NIOCore
import Storage
import Synchronization

/// A route whose answer is the path and a number that rises with every call. `/wait` and `/fail` come after a second.
final class CountedRoute: Sendable {
  final class TestAdmission: Admission {
    let isOpen = Mutex(true)
    let admitted = Mutex(0)
    func refusal(of client: ClientID) -> HTTPResponse? {
      guard isOpen.withLock({ $0 }) else { return Problem.full(.serverFull, "There is no room.").response }
      admitted.withLock { $0 += 1 }
      return nil
    }
  }

  let calls = Mutex(0)
  let stamp = Generation()
  let admission = TestAdmission()

  var count: Int { calls.withLock { $0 } }

  func route(_ request: HTTPRequest, _ loop: any EventLoop) -> HTTPAnswer {
    let sharing = Cacheability(stamp)
    let call = calls.withLock { calls in
      calls += 1
      return calls
    }
    // Two pieces, which the second client gets in one buffer by HTTP/1.1.
    let pieces = ["\(request.target.path) ", "\(call)"].map { BodyPiece.bytes(ByteBuffer(string: $0)) }
    let response = HTTPResponse.media(pieces, type: .mp4, cache: .immutable, entityTag: "\"\(call)\"")
    switch request.path.first {
    case "wait": return .later(loop.scheduleTask(in: .seconds(1)) { response }.futureResult, sharing)
    case "fail":
      return .later(loop.scheduleTask(in: .seconds(1)) { throw ChannelError.eof }.futureResult, sharing)
    case "alone": return .now(response)
    case "list":
      let playlist = PreencodedResponse(
        type: .hls, cache: .livePlaylist, body: ByteBuffer(string: String(repeating: "#EXT \(call)\n", count: 100)))
      return .now(HTTPResponse(playlist), sharing)
    default: return HTTPAnswer.now(response, sharing).counted(by: admission)
    }
  }
}
