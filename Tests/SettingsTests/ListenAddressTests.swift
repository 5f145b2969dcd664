import Base
import Glibc
import NIOCore
import Settings
import Testing

@Suite struct ListenAddressTests {
  @Test(arguments: [
    (":8080", ListenAddress(host: .any, port: 8080)),
    (":0", ListenAddress(host: .any, port: 0)),
    (":65535", ListenAddress(host: .any, port: 65535)),
    ("1.2.3.4:8080", ListenAddress(host: .ipv4("1.2.3.4"), port: 8080)),
    ("[::1]:8080", ListenAddress(host: .ipv6("::1"), port: 8080)),
  ])
  func threeFormsAreReadAndWrittenBack(text: String, expected: ListenAddress) throws {
    let address = try ListenAddress(parsing: text)
    #expect(address == expected)
    #expect(address.description == text)
  }

  @Test(arguments: [
    "", "8080", ":", ":65536", ":-1", ":+1", ":80a", "::1:8080", "[::1]", "[1.2.3.4]:1", "localhost",
    "localhost.example:80",
    "1.2.3:80", "256.1.1.1:80", "[::1:80", ": 80",
  ])
  func anythingElseIsRefusedWithAdvice(text: String) {
    let error = #expect(throws: ValueError.self) { try ListenAddress(parsing: text) }
    #expect(error?.advice.isEmpty == false)
  }

  @Test func localhostIsTheAddressOfThisMachine() throws {
    #expect(try ListenAddress(parsing: "localhost:8080") == ListenAddress(host: .ipv4("127.0.0.1"), port: 8080))
  }

  @Test func everyAddressMeansBothFamiliesAndFallsBackWithoutIPv6() async throws {
    let address = ListenAddress(host: .any, port: 8080)
    #expect(address.bindCandidates == ["::", "0.0.0.0"])
    let bound = try await address.bind(for: "http") { host, port in
      if host == "::" { throw IOError(errnoCode: EAFNOSUPPORT, reason: "socket") }
      return "\(host) \(port)"
    }
    #expect(bound == "0.0.0.0 8080")
  }

  @Test func aBusyPortSaysWhatToDoAndIsNotTriedAgainOnIPv4() async throws {
    let error = await #expect(throws: ConfigurationError.self) {
      try await ListenAddress(host: .any, port: 1935).bind(for: "rtmp") { host, _ -> Int in
        #expect(host == "::")
        throw IOError(errnoCode: EADDRINUSE, reason: "bind")
      }
    }
    #expect(error?.exitCode == 78)
    #expect(
      error?.description
        == "cannot listen on :1935 (--rtmp or WEIR_RTMP): the port is in use; "
        + "stop the other program or choose another port: --rtmp :1936")
  }
}
