internal import Answers
internal import ArgumentParser
internal import NIOCore
internal import Settings

/// `weir doctor`: looks whether `weir serve` with the same settings would work on this machine. Changes nothing.
struct DoctorCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "doctor",
    abstract: "Look whether this machine suits: ports, certificate, disks, clock, devices.",
    discussion: """
      Takes the flags and variables of weir serve. Each line is ok, or says what
      to do. The exit status is 1 where weir would not start, or clients would
      not reach it.

      Examples:
        weir doctor
        sudo weir doctor --config /etc/weir/weir.yaml --record /var/lib/weir/recordings
        weir doctor --json
      """)

  @OptionGroup var settings: SettingFlags
  @Flag(help: "Print JSON instead of text.") var json = false

  private struct Answer: Encodable {
    let ok: Bool
    let findings: [Finding]
  }

  func run() async throws {
    var findings: [Finding] = []
    /// Lines are shown as they are found: disks and names take their time.
    func add(_ more: [Finding]) {
      findings += more
      if !json { for finding in more { print(finding.text) } }
    }
    let given = SettingSources(flags: settings.given, environment: Arguments.environment())
    let configuration: ServerConfiguration?
    do throws(ConfigurationError) {
      let sources = try given.readingFile()
      configuration = try ServerConfiguration(loading: sources)
      add([.ok("settings", sources.file?.name ?? "", "can be used")])
    } catch {
      configuration = nil
      add([.split(.problem, "settings", "", error.description)])
    }
    if let configuration {
      add(await PortCheck.findings(configuration))
      add(CertificateCheck.findings(configuration))
      add(NameCheck.findings(configuration))
      add(FolderCheck.findings(configuration))
      add(CapacityCheck.findings(configuration))
      add(await ReachCheck.findings(configuration))
      add(await PublisherReachCheck.findings(configuration))
    }
    add(ClockCheck.findings())
    add(LibraryCheck.findings(configuration))
    add(DeviceCheck.findings())
    let isGood = !findings.contains { $0.level == .problem }
    if json { print(String(buffer: JSONText.encode(Answer(ok: isGood, findings: findings)))) }
    if !isGood { throw ExitCode.failure }
  }
}
