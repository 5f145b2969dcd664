import Glibc
@testable import HTTP
import RecordingFiles
@testable import Settings
import Testing

@Suite struct ConfigurationPlacesTests {
  private func configuration(_ flags: [SettingName: [String]]) throws -> ServerConfiguration {
    try ServerConfiguration(loading: SettingSources(flags: flags))
  }

  private func temporaryFolder() throws -> String {
    var template = Array("/tmp/weir-test-XXXXXX".utf8CString)
    try #require(mkdtemp(&template) != nil)
    return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  @Test func theRecordingFolderIsMadeButNotTheOnesAboveIt() throws {
    let root = try temporaryFolder()
    defer {
      rmdir(root + "/recordings")
      rmdir(root)
    }
    try configuration(["record": [root + "/recordings"]]).prepareFolders()
    #expect(access(root + "/recordings", W_OK) == 0)
    let deep = try configuration(["record": [root + "/no/such"]])
    let error = #expect(throws: ConfigurationError.self) { try deep.prepareFolders() }
    #expect(error?.exitCode == 78)
    #expect(
      error?.description == "\(root)/no/such (--record or WEIR_RECORD): the folder above it does not exist; "
        + "make it or name another one, or use --no-record")
  }

  @Test func aFileIsNoFolderAndAMissingWebFolderIsTold() throws {
    let file = try configuration(["no-record": ["1"], "segments": ["/etc/passwd"]])
    #expect(throws: ConfigurationError.self) { try file.prepareFolders() }
    let web = try configuration(["no-record": ["1"], "web": ["/nonexistent"]])
    let error = #expect(throws: ConfigurationError.self) { try web.prepareFolders() }
    #expect(error?.description.contains("no such folder") == true)
  }

  @Test func unusableCertificatesAreNamed() throws {
    func files(_ certificate: String, _ key: String) throws -> TLSFiles {
      try #require(try configuration(["https": [":0"], "tls-cert": [certificate], "tls-key": [key]]).tls)
    }
    let absent = try files("/nonexistent.pem", "/etc/passwd")
    let missing = #expect(throws: TLSFilesError.self) { try absent.read() }
    #expect(
      missing?.description == "/nonexistent.pem (--tls-cert or WEIR_TLS_CERT): cannot read: "
        + "No such file or directory; name a file that this user may read")
    let other = try files("/etc/passwd", "/etc/passwd")
    let garbage = #expect(throws: TLSFilesError.self) { try other.read() }
    #expect(garbage?.description.contains("holds no certificate in PEM form") == true)
  }

  @Test func whatRecordingsSayOfFlagsIsTheirName() {
    #expect(RecordingStop.longest.description.contains("\(RecordingOptions().recordMaxDuration.name.flag)"))
    #expect(RecordingStop.largest.description.contains("\(RecordingOptions().recordMaxSize.name.flag)"))
    #expect(RecordingStop.split.description.hasSuffix(" \(RecordingOptions().recordSplit.name.flag)"))
  }
}
