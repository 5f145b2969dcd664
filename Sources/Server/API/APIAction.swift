internal import Answers
internal import Base
internal import Delivery
internal import HTTP
internal import NIOCore
internal import NIOHTTP1

/// The response to an action: 200 with the state that it leads to. If that state is not reached in time, 202 with the present
/// state, and `Location` with the address that tells more. The client may say how long it waits (`?wait=10s`).
struct APIAction {
  /// The limit of `wait`.
  static let longest = Duration.seconds(30)
  /// Without `wait`. A copy may be needed, the first key frame may be far away, or the disk may be busy.
  static let standard = Duration.seconds(2)
  /// The query item.
  static let parameter = APIParameter(
    "wait", .text, "How long to wait for the state that the action leads to: 0s to 30s; by default 2s.")

  let patience: TimeAmount
  let eventLoop: any EventLoop
  /// The address that tells the state.
  private let address: String

  /// - Parameter address: which address tells the state.
  init(_ request: APIRequest, telling address: String) throws(ValueError) {
    var wait = Self.standard
    if let text = request.http.query("wait") {
      wait = try DurationText.parse(text)
      guard (.zero...Self.longest).contains(wait) else {
        throw ValueError("wait is not between 0s and 30s", advice: "ask \(address) for the state later")
      }
    }
    patience = .milliseconds(wait.wholeMilliseconds)
    eventLoop = request.eventLoop
    self.address = address
  }

  /// The response, with the state as it is now.
  func response(_ state: some APIObject, isReached: Bool) -> HTTPResponse {
    var response = HTTPResponse.json(state)
    guard !isReached else { return response }
    response.status = .accepted
    response.headers.append(HeaderField("Location", address))
    return response
  }

  /// Responds as soon as the state is reached. For states that ring no bell: it looks every 50 ms.
  func when(_ isReached: @escaping @Sendable () -> Bool, _ respond: @escaping @Sendable (Bool) -> HTTPResponse)
    -> HTTPAnswer
  {
    guard !isReached() else { return .now(respond(true)) }
    let promise = eventLoop.makePromise(of: HTTPResponse.self)
    let deadline = NIODeadline.now() + patience
    eventLoop.scheduleRepeatedTask(initialDelay: .zero, delay: .milliseconds(50)) { task in
      let isThere = isReached()
      guard isThere || NIODeadline.now() >= deadline else { return }
      task.cancel()
      promise.succeed(respond(isThere))
    }
    return .later(promise.futureResult)
  }

  static func refusal(_ error: ValueError) -> HTTPAnswer {
    .now(Problem(.malformedQuery, "The action cannot be done: \(error.reason).", help: "\(error.advice).").response)
  }
}
