package import FMP4
package import Publishing

/// What becomes of an offer.
package enum WebRTCReply: Sendable {
  case answered(WebRTCAnswer)
  /// A viewer would be answered if media of these kinds was made for it.
  case needs(Set<MediaKind>)
  /// It cannot be taken.
  case notTaken(OfferError)
  /// The gate refused.
  case refused(PublishRefusal)
  /// Too many sessions of the address are not connected, or too many of all.
  case tooManyWaiting
  /// As many streams are watched as may be.
  case noRoom
  /// The server ended the session, or the wait for it.
  case ended(String)
}

/// What becomes of a change to a session (RFC 9725 §4.3), or of its end (§4.2).
package enum WebRTCChange: Sendable {
  case noSuchSession
  /// The server has ended the session, and why.
  case over(String)
  /// The condition names another state of the session.
  case outdated
  case malformed(OfferError)
  /// Candidates were taken, and passed over; or the session has ended.
  case taken
  /// ICE begins again: the fragment of an answer, and the new tag.
  case restarted(String, entityTag: String)
}
