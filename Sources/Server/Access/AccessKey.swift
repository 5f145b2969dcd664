internal import Basics
internal import FMP4
internal import Ingest

/// A key that was made over the API: its name, its digest, and what it allows. The text is told once, when it is made.
struct AccessKey: Sendable {
  /// What it allows. Its name is the key's name, unique on this server.
  var grant: AccessGrant
  let secret: Secret
  let madeAt: WallTime

  /// Letters of a key after `prefix`: base32 of 160 random bits, so that no key can be guessed.
  private static let letters = 32
  /// Tells a key from a JWT, and helps to find keys that were published by mistake.
  static let prefix = "wk_"

  /// A new text of a key.
  static func text(using generator: inout some RandomNumberGenerator) -> String {
    let alphabet = Array("abcdefghijklmnopqrstuvwxyz234567")
    return prefix + String((0..<letters).map { _ in alphabet[Int(generator.next() & 31)] })
  }

  /// The rule for names of keys.
  static func name(parsing text: String) throws(ValueError) -> String {
    guard let name = StreamName(text) else {
      throw ValueError("that is no name for a key", advice: "use \(StreamName.grammar)")
    }
    return name.description
  }
}
