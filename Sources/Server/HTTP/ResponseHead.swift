internal import NIOHTTP1

/// Status and fields of a response, before a version of HTTP gives them their form. What every response carries (Date,
/// nosniff) is added there.
struct ResponseHead {
  /// What is known of the body's length.
  enum BodyLength {
    /// No body can follow: 204 and 304.
    case bodiless
    /// In bytes; also in the answer to HEAD.
    case known(Int)
    /// The body grows while it is sent.
    case open
  }

  var status: HTTPResponseStatus
  /// What the route gave, and what the plan found to say.
  var fields: [HeaderField]
  /// With its quotes.
  var entityTag: String?
  var length: BodyLength

  /// Fields that are in every response, errors too.
  static let common = [HeaderField("X-Content-Type-Options", "nosniff")]
}
