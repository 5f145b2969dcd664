internal import Base
internal import FMP4
internal import HTTP
internal import Settings

/// Whether the certificate can be used, and for how long.
enum CertificateCheck {
  private static let day: Int64 = 86_400
  /// Days before the end from which it should have been renewed: certbot does so 30 days before.
  private static let late: Int64 = 20

  static func findings(_ configuration: ServerConfiguration) -> [Finding] {
    guard let files = configuration.tls else { return [] }
    do throws(TLSFilesError) {
      return [finding(try files.validity(), now: SteadyClock.system().wallTime, files.certificate)]
    } catch {
      return [.split(.problem, "certificate", "", error.description)]
    }
  }

  static func finding(_ validity: TLSFiles.Validity, now: WallTime, _ path: String) -> Finding {
    let now = now.seconds
    let renew = "put a renewed one in its place, it is taken without a restart"
    if now >= validity.end {
      let days = (now - validity.end) / day
      return .problem("certificate", path, "expired \(count(days, "day")) ago", renew)
    }
    if now < validity.begin {
      return .problem(
        "certificate", path, "is not valid before \(count((validity.begin - now) / day + 1, "day")) from now",
        "look at the clock of this machine")
    }
    let left = (validity.end - now) / day
    guard left >= late else { return .advice("certificate", path, "ends in \(count(left, "day"))", renew) }
    return .ok("certificate", path, "valid for \(count(left, "day")), and the key belongs to it")
  }

  private static func count(_ number: Int64, _ unit: String) -> String { "\(number) \(unit)\(number == 1 ? "" : "s")" }
}
