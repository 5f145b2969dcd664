internal import NIOSSL

extension TLSFiles {
  /// From when and until when a certificate is valid, in seconds since 1970.
  package struct Validity: Sendable, Hashable {
    package var begin: Int64
    package var end: Int64

    package init(begin: Int64, end: Int64) {
      (self.begin, self.end) = (begin, end)
    }
  }

  /// Reads both files, and checks that they belong together. The error says what is wrong. Blocks on the disk.
  package func validity() throws(TLSFilesError) -> Validity {
    let pair = try read()
    _ = try pair.context(minimumVersion: .tlsv12)
    // A chain has at least its leaf.
    return Validity(
      begin: pair.chain.first.map { Int64($0.notValidBefore) } ?? 0,
      end: pair.chain.first.map { Int64($0.notValidAfter) } ?? 0)
  }

  /// The names that the certificate is for. Throws as `validity` does. Blocks on the disk.
  package func hosts() throws(TLSFilesError) -> AllowedHosts { AllowedHosts(try read().hosts) }
}
