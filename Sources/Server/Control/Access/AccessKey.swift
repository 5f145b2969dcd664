package import Base
package import FMP4
package import Publishing

/// A key with a name, of the configuration file or made over the API: its digest, and what it allows. The text of one that was made
/// is told once.
package struct AccessKey: Sendable {
  /// What it allows. Its name is the key's name, unique on this server.
  package var grant: AccessGrant
  package let secret: Secret
  /// Nil for a key of the configuration file.
  package let madeAt: WallTime?

  package init(grant: AccessGrant, secret: Secret, madeAt: WallTime?) {
    (self.grant, self.secret, self.madeAt) = (grant, secret, madeAt)
  }

  /// The most patterns of an action.
  package static let patternLimit = 64

  /// Letters of a key after `prefix`: base32 of 160 random bits, so that no key can be guessed.
  private static let letters = 32
  /// Tells a key from a JWT, and helps to find keys that were published by mistake.
  static let prefix = "wk_"

  /// A new text of a key.
  package static func text(using generator: inout some RandomNumberGenerator) -> String {
    let alphabet = Array("abcdefghijklmnopqrstuvwxyz234567")
    return prefix + String((0..<letters).map { _ in alphabet[Int(generator.next() & 31)] })
  }

  /// The rule for names of keys.
  package static func name(parsing text: String) throws(ValueError) -> String {
    guard let name = StreamName(text) else {
      throw ValueError("that is no name for a key", advice: "use \(StreamName.grammar)")
    }
    return name.description
  }
}
