@testable import Base
import Testing

@Suite struct MachineNamesTests {
  private func names(_ host: String, hosts: String = "") -> [String] { MachineNames.all(of: host, hosts: hosts) }

  @Test func namesOfOneLineAreOfOneMachine() {
    let hosts =
      "127.0.0.1\tlocalhost\n127.0.1.1 studio.example.org studio # studio.evil.example\n10.0.0.2 other.example.org other\n"
    #expect(names("studio", hosts: hosts) == ["studio", "studio.example.org", "studio"])
  }

  @Test func theHostNameMayHaveItsDomain() {
    #expect(names("studio.example.org") == ["studio.example.org"])
    let hosts = "127.0.1.1 studio.lan studio"
    #expect(names("studio.example.org", hosts: hosts) == ["studio.example.org", "studio.lan", "studio"])
  }

  @Test func aMachineWithoutANameHasNone() { #expect(names("", hosts: "127.0.0.1 localhost").isEmpty) }
}
