import Glibc
@testable import Server
import Settings
import Testing

/// Sockets from descriptor 3 on: this process has others there, so only what is said about them is tested here. That they are
/// used is seen end to end.
@Suite struct InheritedSocketsTests {
  @Test func thoseOfAnotherProcessAreNotTaken() throws {
    let sockets = try InheritedSockets(
      environment: ["LISTEN_PID": "1", "LISTEN_FDS": "1", "LISTEN_FDNAMES": "http"], process: 2)
    #expect(InheritedSockets.listeners.allSatisfy { sockets[$0] == nil })
  }

  @Test(arguments: [
    [:], ["LISTEN_PID": "7"], ["LISTEN_PID": "7", "LISTEN_FDS": "0"], ["LISTEN_FDS": "x", "LISTEN_PID": "7"],
  ])
  func withoutAnyNothingIsTaken(_ environment: [String: String]) throws {
    let sockets = try InheritedSockets(environment: environment, process: 7)
    #expect(InheritedSockets.listeners.allSatisfy { sockets[$0] == nil })
  }

  @Test func moreThanWeirListensOnAreRefused() {
    #expect(throws: ConfigurationError.self) {
      try InheritedSockets(environment: ["LISTEN_PID": "7", "LISTEN_FDS": "17"], process: 7)
    }
  }
}

@Suite struct SystemdNotifyTests {
  @Test func aManagerHearsThatTheServerIsReady() throws {
    let name = "@weir-test-\(getpid())"
    let descriptor = socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
    defer { close(descriptor) }
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    var bytes = Array(name.utf8)
    bytes[0] = 0
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
    let length = socklen_t(MemoryLayout<sa_family_t>.size + bytes.count)
    let bound = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, __CONST_SOCKADDR_ARG(__sockaddr__: $0), length)
      }
    }
    try #require(bound == 0)
    SystemdNotify.send(.ready, to: name)
    var buffer = [UInt8](repeating: 0, count: 64)
    let count = recv(descriptor, &buffer, buffer.count, CInt(MSG_DONTWAIT))
    #expect(String(decoding: buffer.prefix(max(0, count)), as: UTF8.self) == "READY=1")
  }
}
