import FMP4
import Glibc
import HTTP
@testable import Server
import Settings
import Testing

@Suite struct DoctorTests {
  @Test(arguments: [
    ("1.5.1-1", "1.5.1-1+deb12u1"), ("1.5.1-1+deb12u1", "1.5.1-1+deb12u2"), ("1.5.1-1+deb12u9", "1.5.1-1+deb12u10"),
    ("1.5.1-1+deb12u2", "1.5.3-1"), ("1.5.1~rc1-1", "1.5.1-1"), ("9:1", "10:0"), ("2:1.0-1", "10:0.5-1"),
    ("1.0a", "1.0b"), ("1.0", "1.0a"), ("1.0a", "1.0+"), ("1.0~~", "1.0~"), ("1.0-1", "1.0-1.1"), ("", "1"),
  ])
  func aVersionOfAPackageComesBeforeALaterOne(_ older: String, _ newer: String) {
    #expect(DebianVersion(older) < DebianVersion(newer))
    #expect(!(DebianVersion(newer) < DebianVersion(older)))
    #expect(DebianVersion(older) != DebianVersion(newer))
  }

  @Test func versionsThatDifferInLeadingZerosAreTheSame() {
    #expect(DebianVersion("1.05-01") == DebianVersion("1.5-1"))
    #expect(DebianVersion("1.0") == DebianVersion("0:1.0"))
  }

  @Test func aLibraryWithAKnownFlawIsNamedWithTheVersionThatMendsIt() throws {
    let package = "libsrt1.5-gnutls"
    for (version, level) in [("1.5.1-1+deb12u1", Finding.Level.problem), ("1.5.1-1+deb12u2", .ok), ("1.5.3-1", .ok)] {
      let finding = try #require(LibraryCheck.findings([package: version], open: [.srt]).first)
      #expect(finding.level == level && finding.text.contains(version))
    }
    let unused = try #require(LibraryCheck.findings([package: "1.5.1-1"], open: [.webRTC]).first)
    #expect(unused.level == .advice && unused.text.contains("1.5.1-1+deb12u2"))
  }

  @Test(arguments: [
    ("3.0.9-1", Finding.Level.problem), ("3.0.19-1~deb12u2", .problem), ("3.0.22-1~deb12u1", .problem),
    ("3.0.22-1~deb12u2", .ok), ("3.0.23-1~deb12u1", .ok), ("3.0.2-0ubuntu1.20", .ok),
  ])
  func anOpenSSLWithFlawsOfDTLSIsAProblemWhereWebRTCIsOpen(_ version: String, level: Finding.Level) throws {
    let finding = try #require(LibraryCheck.findings(["libssl3": version], open: [.webRTC]).first)
    #expect(finding.level == level && finding.subject == "libssl3" && finding.found.contains(version))
    let unused = try #require(LibraryCheck.findings(["libssl3": version], open: [.srt]).first)
    #expect(unused.level == (level == .ok ? .ok : .advice))
  }

  @Test func namesThatAreAnsweredAreTold() {
    let lacking = NameCheck.finding(names: ["weir", "weir.lan"], isReached: true, hasName: false)
    #expect(lacking.level == .advice && lacking.found.contains("*.local, *.internal, *.home.arpa, weir.lan;"))
    #expect(lacking.advice?.contains("--public-url") == true)
    for (isReached, hasName) in [(true, true), (false, false), (false, true)] {
      #expect(NameCheck.finding(names: [], isReached: isReached, hasName: hasName).level == .ok)
    }
    let many = NameCheck.finding(names: Set((1...1000).map { "n\($0).example" }), isReached: false, hasName: true)
    #expect(many.found.utf8.count < 500 && many.found.hasSuffix("…"))
  }

  @Test func aServerThatOtherMachinesReachWantsAName() throws {
    let levels: [([SettingName: [String]], Finding.Level)] = [
      (["http": ["10.1.2.3:8080"]], .advice), (["http": ["127.0.0.1:8080"]], .ok), (["http": ["[::1]:8080"]], .ok),
      (["http": ["10.1.2.3:8080"], "trusted-proxy": ["10.1.2.1"]], .ok),
      (["http": ["10.1.2.3:8080"], "allowed-host": ["live.example.org"]], .ok),
    ]
    for (flags, level) in levels {
      let configuration = try ServerConfiguration(loading: SettingSources(flags: flags))
      #expect(NameCheck.findings(configuration).map(\.level) == [level], "\(flags)")
    }
  }

  @Test func packagesThatWereRemovedHaveNoVersion() throws {
    let path = "/tmp/weir-dpkg-\(getpid())-\(UInt32.random(in: 0...UInt32.max))"
    let file = try #require(fopen(path, "w"))
    fputs(
      """
      Package: one
      Status: install ok installed
      Version: 1:2.3-4

      Package: two
      Status: deinstall ok config-files
      Version: 5

      """, file)
    fclose(file)
    defer { unlink(path) }
    #expect(DebianPackages.versions(of: ["one", "two", "three"], in: path) == ["one": "1:2.3-4"])
    #expect(DebianPackages.versions(of: ["one"], in: path + "-not").isEmpty)
  }

  @Test func aCertificateIsOkUntilTwentyDaysBeforeItsEnd() {
    let day: Int64 = 86_400
    func level(_ now: Int64) -> Finding.Level {
      CertificateCheck.finding(
        TLSFiles.Validity(begin: 0, end: 90 * day), now: WallTime(milliseconds: now * 1000), "cert.pem"
      ).level
    }
    #expect(level(-1) == .problem)
    #expect(level(0) == .ok)
    #expect(level(70 * day) == .ok)
    #expect(level(70 * day + 1) == .advice)
    #expect(level(90 * day - 1) == .advice)
    #expect(level(90 * day) == .problem)
  }

  @Test func `A listener of SRT answers the socket that asked, and nothing else is taken for its answer`() {
    let request = SRTInduction.request
    #expect(request.count == 64 && request[23] == 2 && request[39] == 1)
    var answer = request
    answer.replaceSubrange(12..<16, with: request[40..<44])
    #expect(SRTInduction.isAnswer(answer))
    #expect(!SRTInduction.isAnswer(answer.dropLast()))
    #expect(!SRTInduction.isAnswer(request), "of another socket")
    answer[1] = 1
    #expect(!SRTInduction.isAnswer(answer), "no handshake")
    #expect(!SRTInduction.isAnswer([UInt8]()))
  }

  @Test func fewDescriptorsAreAProblem() {
    func level(_ limit: Int) -> Finding.Level { CapacityCheck.finding(limit: limit, streams: 1, viewers: 1).level }
    #expect(level(1023) == .problem)
    #expect(level(1024) == .advice)
    #expect(level(65_535) == .advice)
    #expect(level(65_536) == .ok)
  }

  @Test func aDiskIsJudgedByItsRoomAndItsSpeed() {
    func level(_ trial: DiskTrial) -> Finding.Level { FolderCheck.judged("x", trial, keepFree: 1_000_000_000).level }
    let quick = DiskTrial(free: 2_000_000_000, bytesPerSecond: 20_000_000, syncMicroseconds: 100_000)
    #expect(level(quick) == .ok)
    #expect(level(DiskTrial(free: 1_000_000_000, bytesPerSecond: 20_000_000, syncMicroseconds: 1)) == .problem)
    #expect(level(DiskTrial(free: 2_000_000_000, bytesPerSecond: 19_999_999, syncMicroseconds: 1)) == .advice)
    #expect(level(DiskTrial(free: 2_000_000_000, bytesPerSecond: 20_000_000, syncMicroseconds: 100_001)) == .advice)
    #expect(level(DiskTrial(free: 2_000_000_000)) == .ok)
    let memory = DiskTrial(free: 2_000_000_000, system: "tmpfs", bytesPerSecond: 1_000_000_000, syncMicroseconds: 1)
    #expect(level(memory) == .advice)
  }

  @Test func aTrialLeavesNothingBehind() throws {
    let folder = "/tmp/weir-doctor-test-\(getpid())-\(UInt32.random(in: 0...UInt32.max))"
    try #require(mkdir(folder, 0o700) == 0)
    let trial = try #require(DiskTrial(in: folder, keepFree: 0))
    #expect(trial.bytesPerSecond ?? 0 > 0 && trial.syncMicroseconds != nil)
    #expect(rmdir(folder) == 0)
    #expect(DiskTrial(in: folder, keepFree: 0) == nil)
  }

  @Test func aClockThatFollowsNoTimeServerGetsAdvice() {
    #expect(ClockCheck.finding(1, microseconds: 3000).text.contains("within 3 ms"))
    #expect(ClockCheck.finding(0, microseconds: 0).level == .advice)
    #expect(ClockCheck.finding(-1, microseconds: 0).level == .advice)
  }

  @Test func aMessageIsSplitIntoWhatWasFoundAndWhatToDo() {
    let finding = Finding.split(.problem, "port", "", "cannot listen: nginx has it; stop it; or not")
    #expect(finding.found == "cannot listen: nginx has it" && finding.advice == "stop it; or not")
    #expect(Finding.split(.advice, "x", "", "no more").advice == nil)
    #expect(Finding.ok("folder", "a\u{1B}[2J", "b").text.contains("\u{1B}") == false)
  }
}
