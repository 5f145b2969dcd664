internal import LibAV
internal import Settings

/// Which libraries weir runs with, and whether flaws of them are known.
enum LibraryCheck {
  /// What remote packets reach a library by.
  enum Entrance: Sendable {
    case srt, webRTC
  }

  /// A flaw of a Debian package that a later version mends.
  struct Flaw {
    var package: String
    var mended: String
    var what: String
    var entrance: Entrance
  }

  /// What remote packets or files can use.
  static let flaws = [
    Flaw(
      package: "libsrt1.5-gnutls", mended: "1.5.1-1+deb12u2",
      what: "remote packets can overflow its memory (CVE-2026-55868, CVE-2026-55869)", entrance: .srt),
    Flaw(
      package: "libssl3", mended: "3.0.22-1~deb12u2",
      what: "remote packets of DTLS can take its memory or end it (CVE-2026-54874, CVE-2026-75806, CVE-2026-84782)",
      entrance: .webRTC),
  ]
  /// Those that read what clients send.
  private static let packages = ["libavcodec59", "libavcodec-extra59", "libsrt1.5-gnutls", "libssl3", "libsqlite3-0"]

  /// - Parameter configuration: nil where it has a mistake.
  static func findings(_ configuration: ServerConfiguration?) -> [Finding] {
    let library =
      if let failure = CaptureLibrary.failure {
        Finding.split(.problem, "library", "libavcodec", failure)
      } else {
        Finding.ok("library", CaptureLibrary.description, "can be loaded")
      }
    var open: Set<Entrance> = []
    if configuration?.srt != nil { open.insert(.srt) }
    if configuration?.webRTC != nil { open.insert(.webRTC) }
    return [library] + findings(DebianPackages.versions(of: packages), open: open)
  }

  /// - Parameters:
  ///   - versions: the versions of the packages that are installed, by their names. Those of Ubuntu are not judged: it mends under
  ///     numbers of its own.
  ///   - open: the entrances that the server has.
  static func findings(_ versions: [String: String], open: Set<Entrance>) -> [Finding] {
    packages.compactMap { package in
      guard let version = versions[package] else { return nil }
      guard let flaw = flaws.first(where: { $0.package == package }),
        !version.contains("ubuntu"), DebianVersion(version) < DebianVersion(flaw.mended)
      else { return .ok("library", package, version) }
      return Finding(
        level: open.contains(flaw.entrance) ? .problem : .advice, check: "library", subject: package,
        found: "\(version): \(flaw.what)",
        advice: "apt-get update && apt-get install \(package), for \(flaw.mended) or newer")
    }
  }
}
