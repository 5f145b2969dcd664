import Base
import NIOCore
@testable import Server
import Settings
import Synchronization
import Testing

@Suite struct ListeningSocketsTests {
  /// What was started and stopped, in order.
  private final class Diary: Sendable {
    let lines = Mutex<[String]>([])
  }

  private struct Taken: Error {}

  private func place(
    _ setting: SettingName, _ port: UInt16, _ diary: Diary, isInherited: Bool = false, isTaken: Bool = false
  ) -> ListeningSocket {
    ListeningSocket(
      setting: setting, address: ListenAddress(host: .ipv4("127.0.0.1"), port: port), isInherited: isInherited
    ) {
      guard !isTaken else { throw Taken() }
      diary.lines.withLock { $0.append("start \(port)") }
      return try SocketAddress(ipAddress: "127.0.0.1", port: Int(port))
    } stop: { address in
      diary.lines.withLock { $0.append("stop \(address.port ?? 0)") }
    }
  }

  private func listening(to places: [ListeningSocket]) async throws -> ListeningSockets {
    let listening = ListeningSockets()
    for place in places { await listening.add(place, bound: try await place.start()) }
    return listening
  }

  private func change(_ listening: ListeningSockets, to next: [ListeningSocket]) async throws {
    await listening.replace(with: try await listening.opened(of: next), next: next)
  }

  @Test func newPlacesAreOpenedBeforeOldOnesAreClosed() async throws {
    let diary = Diary()
    let listening = try await listening(to: [place("http", 1, diary), place("rtmps", 2, diary)])
    try await change(listening, to: [place("http", 1, diary), place("https", 3, diary)])
    try await change(listening, to: [place("http", 4, diary), place("https", 3, diary)])
    #expect(diary.lines.withLock { $0 } == ["start 1", "start 2", "start 3", "stop 2", "start 4", "stop 1"])
  }

  @Test func whereOneCannotBeOpenedNothingChanges() async throws {
    let diary = Diary()
    let listening = try await listening(to: [place("http", 1, diary)])
    let next = [place("https", 2, diary), place("rtmps", 3, diary, isTaken: true)]
    await #expect(throws: Taken.self) { try await change(listening, to: next) }
    #expect(diary.lines.withLock { $0 } == ["start 1", "start 2", "stop 2"])
  }

  /// The socket belongs to the service manager, and a second channel for it would close it.
  @Test func aSocketThatWasPassedToWeirStays() async throws {
    let diary = Diary()
    let listening = try await listening(to: [place("http", 1, diary, isInherited: true)])
    try await change(listening, to: [place("http", 2, diary, isInherited: true)])
    try await change(listening, to: [])
    #expect(diary.lines.withLock { $0 } == ["start 1"])
  }
}
