internal import Base
internal import NIOCore
internal import NIOHTTP1
internal import Publishing
internal import Synchronization

/// Asks a server of the operator's whether somebody may publish. Its answers are kept for a while, so that a publisher that
/// reconnects does not wait for it.
package final class AuthorizationCallback: Sendable {
  package struct Settings: Sendable, Hashable {
    package var url: String
    package var patience = Duration.seconds(2)
    /// How long an answer holds.
    package var memory = Duration.seconds(10)
    package var otherwise = Otherwise.refuse

    package init(
      url: String, patience: Duration = Duration.seconds(2), memory: Duration = Duration.seconds(10),
      otherwise: Otherwise = .refuse
    ) {
      (self.url, self.patience, self.memory, self.otherwise) = (url, patience, memory, otherwise)
    }
  }

  /// What holds where the other server does not answer.
  package enum Otherwise: String, Sendable, Hashable, CaseIterable {
    case refuse, admit
  }

  /// What is asked. The key goes to the other server as it was given.
  struct Question: Sendable, Hashable {
    var stream: StreamName
    var protocolName: String
    var address: String?
    var key: Secret?

    fileprivate var json: String {
      let key = key?.text.map(LogText.json) ?? "null"
      return #"{"action":"publish","address":\#(address.map(LogText.json) ?? "null"),"key":\#(key),"#
        + #""protocol":\#(LogText.json(protocolName)),"stream":\#(LogText.json(stream.description))}"#
    }
  }

  enum Verdict: Sendable, Hashable {
    case admitted
    case refused
    /// There was no answer, for this reason, and the rule for that case says so.
    case unanswered(Otherwise, String)
  }

  private struct State {
    var known: [Question: (isAdmitted: Bool, until: MonotonicTime)] = [:]
    var underWay = 0
  }

  /// The most requests at once, and the most answers that are kept.
  private static let most = (requests: 256, answers: 10_000)

  let settings: Settings
  private let clock: SteadyClock
  private let state = Mutex(State())

  init(_ settings: Settings, clock: SteadyClock) {
    self.settings = settings
    self.clock = clock
  }

  func ask(_ question: Question) async -> Verdict {
    if let known = known(question) { return known ? .admitted : .refused }
    let mayAsk = state.withLock { state in
      guard state.underWay < Self.most.requests else { return false }
      state.underWay += 1
      return true
    }
    guard mayAsk else { return .unanswered(settings.otherwise, "\(Self.most.requests) requests are under way") }
    defer { state.withLock { $0.underWay -= 1 } }
    let request = OutgoingRequest(
      method: .POST, url: settings.url, fields: [("Content-Type", "application/json")],
      body: ByteBuffer(string: question.json), patience: settings.patience)
    do throws(OutgoingRequest.Failure) {
      let answer = try await request.send()
      guard answer.body != nil else { return .unanswered(settings.otherwise, "the answer does not end") }
      switch answer.status {
      case 200..<300: return keep(true, question)
      case 401, 403, 404: return keep(false, question)
      default: return .unanswered(settings.otherwise, "the answer has the status \(answer.status)")
      }
    } catch {
      return .unanswered(settings.otherwise, error.description)
    }
  }

  private func known(_ question: Question) -> Bool? {
    let now = clock.monotonic()
    return state.withLock { $0.known[question].flatMap { $0.until > now ? $0.isAdmitted : nil } }
  }

  private func keep(_ isAdmitted: Bool, _ question: Question) -> Verdict {
    let now = clock.monotonic()
    let until = now &+ settings.memory.wholeMilliseconds &* 1_000_000
    state.withLock { state in
      if state.known.count >= Self.most.answers { state.known = state.known.filter { $0.value.until > now } }
      if state.known.count < Self.most.answers { state.known[question] = (isAdmitted, until) }
    }
    return isAdmitted ? .admitted : .refused
  }
}
