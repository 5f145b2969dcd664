internal import Base
internal import FMP4
internal import Publishing

/// What a publication keeps of its tracks.
extension WebRTCPublication {
  /// A track of video, and when key frames of it came and were asked for.
  struct Video {
    /// Of codecs with parameter sets, since the first frame.
    var parameters: VideoParameterSets?
    var isConfigured = false
    var lastTimestamp: UInt32?
    var keyFrame: MonotonicTime?
    /// Frames were lost behind the newest key frame.
    var isBroken = false
    var asked: MonotonicTime?
    /// The first request since the newest key frame.
    var firstAsked: MonotonicTime?
    /// Frames since that request: when the first came, and how many. A sender without frames ignores nothing.
    var unanswered: (since: MonotonicTime, count: Int)?
    /// Since when the first one is awaited.
    var awaitedSince: MonotonicTime?
    /// It was told that none comes.
    var isTold = false
    /// The stream wants one, whatever its distance.
    var isWanted = false
    /// From a request to its key frame, in nanoseconds: the longest of late.
    var response = WebRTCPublication.leastLead
    var refusal: String?
    /// Made of the newest parameter sets or key frame, and not handed on yet.
    var codec: Codec?
    var isNew = false

    /// The stream has it no longer. It is told its codec again when it comes back.
    mutating func leave() {
      (isConfigured, isNew, lastTimestamp) = (false, codec != nil, nil)
      // What it was asked while it had stopped says nothing of how soon it answers.
      (firstAsked, unanswered) = (nil, nil)
    }

    mutating func noteRequest(_ now: MonotonicTime) {
      asked = now
      firstAsked = firstAsked ?? now
    }

    mutating func noteKeyFrame(_ now: MonotonicTime) {
      // A camera that was off for long is no slow sender.
      if let firstAsked {
        response = max(min(now &- firstAsked, 2 * WebRTCPublication.pause), response / 8 &* 7)
      }
      (firstAsked, unanswered) = (nil, nil)
      (keyFrame, isBroken, isWanted) = (now, false, false)
    }

    /// Whether the next key frame would come too late if it were asked for later. The first one comes by itself, maybe slowly.
    /// `reserve`: time for another request, in nanoseconds, where one may be lost.
    mutating func isDue(_ distance: Int64?, reserve: Int64, _ now: MonotonicTime) -> Bool {
      guard let keyFrame else {
        awaitedSince = awaitedSince ?? now
        return awaitedSince.map { now &- $0 >= WebRTCPublication.pause } ?? false
      }
      guard let distance else { return false }
      let usual = max(response &+ WebRTCPublication.leastLead / 2, WebRTCPublication.leastLead)
      let lead = min(usual &+ reserve, distance / 4)
      return now &- keyFrame >= distance &- lead
    }
  }

  /// A track of audio, and where its next packet is expected.
  struct Audio {
    var isConfigured = false
    var next: UInt32?
    var head: UInt8 = 0
    /// When the newest packet came, and how much silence may be made up, in nanoseconds.
    var arrived: MonotonicTime?
    var credit = WebRTCLimits.silenceAhead
  }
}
