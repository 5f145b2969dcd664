import Testing

@testable import Basics

@Suite struct MachineNamesTests {
  private func names(_ host: String, hosts: String = "", resolver: String = "") -> [String] {
    MachineNames.all(of: host, hosts: hosts, resolver: resolver)
  }

  @Test func namesOfOneLineAreOfOneMachine() {
    let hosts =
      "127.0.0.1\tlocalhost\n127.0.1.1 studio.example.org studio # studio.evil.example\n10.0.0.2 other.example.org other\n"
    #expect(names("studio", hosts: hosts) == ["studio", "studio.example.org", "studio"])
  }

  @Test func theNetworkHasItInItsDomains() {
    #expect(
      names("studio", resolver: "nameserver 10.0.0.1\nsearch old\nsearch fritz.box lan\n")
        == ["studio", "studio.fritz.box", "studio.lan"])
    #expect(names("studio.example.org", resolver: "domain lan") == ["studio.example.org", "studio.lan"])
  }

  @Test func aMachineWithoutANameHasNone() { #expect(names("", resolver: "search lan").isEmpty) }
}
