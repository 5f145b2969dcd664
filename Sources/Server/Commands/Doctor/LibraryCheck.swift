internal import Basics
internal import Ingest

/// Which libraries weir runs with, and whether flaws of them are known.
enum LibraryCheck {
  /// A flaw of a Debian package that a later version mends.
  struct Flaw {
    var package: String
    var mended: String
    var what: String
  }

  /// What remote packets or files can use.
  static let flaws = [
    Flaw(
      package: "libsrt1.5-gnutls", mended: "1.5.1-1+deb12u2",
      what: "remote packets can overflow its memory (CVE-2026-55868, CVE-2026-55869)")
  ]
  /// Those that read what clients send.
  private static let packages = ["libavcodec59", "libavcodec-extra59", "libsrt1.5-gnutls", "libssl3", "libsqlite3-0"]

  static func findings(usesSRT: Bool) -> [Finding] {
    let library =
      if let failure = CaptureLibrary.failure {
        Finding.split(.problem, "library", "libavcodec", failure)
      } else {
        Finding.ok("library", CaptureLibrary.description, "can be loaded")
      }
    return [library] + findings(DebianPackages.versions(of: packages), usesSRT: usesSRT)
  }

  /// - Parameter versions: the versions of the packages that are installed, by their names.
  static func findings(_ versions: [String: String], usesSRT: Bool) -> [Finding] {
    packages.compactMap { package in
      guard let version = versions[package] else { return nil }
      guard let flaw = flaws.first(where: { $0.package == package }),
        DebianVersion(version) < DebianVersion(flaw.mended)
      else { return .ok("library", package, version) }
      return Finding(
        level: usesSRT ? .problem : .advice, check: "library", subject: package, found: "\(version): \(flaw.what)",
        advice: "apt-get update && apt-get install \(package), for \(flaw.mended) or newer")
    }
  }
}
