import Glibc
import HTTP
import Logging
import NIOSSL
import Support
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(2))) struct ServerCertificateTests {
  private func wait(_ what: String, until condition: () -> Bool) async throws {
    let deadline = ContinuousClock.now + .seconds(20)
    while !condition() {
      try #require(ContinuousClock.now < deadline, "\(what)")
      try await Task.sleep(for: .milliseconds(5))
    }
  }

  /// Runs `body` while the files are watched.
  private func watching(
    _ files: TLSTestFiles, _ body: (_ certificate: ServerCertificate, _ lines: LoggedLines) async throws -> Void
  ) async throws {
    let lines = LoggedLines()
    let certificate = try ServerCertificate(files: files.files, interval: .milliseconds(20), logger: lines.logger)
    let watch = Task { await certificate.watch() }
    try await body(certificate, lines)
    watch.cancel()
    await watch.value
  }

  @Test func aNewPairIsTakenAndNamed() async throws {
    let (files, renewed) = (try TLSTestFiles(), try TLSTestFiles(names: ["Live.example.org", "*.cdn.example"]))
    try await watching(files) { certificate, lines in
      #expect(certificate.hosts.names == ["localhost"])
      let (https, rtmps) = (certificate.https(), certificate.rtmps())
      try await Task.sleep(for: .milliseconds(200))
      #expect(certificate.https() === https, "nothing changes while the files do not")
      #expect(lines.all == [])
      rename(renewed.certificate, files.certificate)
      rename(renewed.key, files.key)
      try await wait("the new pair is taken") { certificate.https() !== https }
      #expect(certificate.rtmps() !== rtmps)
      #expect(certificate.hosts.names == ["live.example.org", "*.cdn.example"])
      let line = try #require(lines.all.last)
      let serial = try #require(NIOSSLCertificate.fromPEMFile(files.certificate).first).serialNumber
      #expect(line.contains(serial.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()))
      #expect(line.contains("valid until 20"))
    }
  }

  @Test func aPairThatDoesNotMatchIsToldOfOnceAndTheOldOneStays() async throws {
    let (files, other) = (try TLSTestFiles(), try TLSTestFiles())
    try await watching(files) { certificate, lines in
      let https = certificate.https()
      rename(other.key, files.key)
      try await wait("the fault is told") { !lines.all.isEmpty }
      try await Task.sleep(for: .milliseconds(300))
      #expect(lines.all.count == 1)
      #expect(lines.all[0].hasPrefix("error the new certificate is not taken"))
      #expect(lines.all[0].contains("does not belong to the certificate"))
      #expect(lines.all[0].contains("use the matching key"))
      #expect(certificate.https() === https)
      rename(other.certificate, files.certificate)
      try await wait("the pair is whole again") { certificate.https() !== https }
    }
  }

  @Test func aFileThatIsGoneOrEmptyChangesNothing() async throws {
    let files = try TLSTestFiles()
    try await watching(files) { certificate, lines in
      let https = certificate.https()
      unlink(files.certificate)
      try await wait("the loss is told") { lines.all.count == 1 }
      #expect(lines.all[0].contains("cannot read: No such file or directory"))
      close(open(files.certificate, O_CREAT | O_WRONLY, 0o644))
      try await wait("the empty file is told of") { lines.all.count == 2 }
      #expect(lines.all[1].contains("holds no certificate in PEM form"))
      #expect(certificate.https() === https)
    }
  }

  @Test func anEndThatIsNearIsWarnedOfOnce() async throws {
    try await watching(try TLSTestFiles(days: 2)) { _, lines in
      try await Task.sleep(for: .milliseconds(200))
      #expect(lines.all.count == 1)
      #expect(lines.all[0].hasPrefix("warning ") && lines.all[0].contains("expires in"))
    }
  }
}
