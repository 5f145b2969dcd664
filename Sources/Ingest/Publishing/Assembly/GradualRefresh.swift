internal import Base

/// Notices video without key frames whose encoder refreshes its picture little by little (intra refresh): nobody can join it.
struct GradualRefresh {
  enum Change { case begins, ends }

  /// Nanoseconds without a key frame before it is told. Encoders refresh the whole picture in less.
  static let patience: Int64 = 5_000_000_000

  /// When the newest key frame came, or the first frame.
  private var since: MonotonicTime?
  private var isSeen = false
  private var isTold = false

  /// Takes what a frame says. Nil: nothing new is to be told.
  mutating func saw(isSync: Bool, isGradual: Bool, now: MonotonicTime) -> Change? {
    if isSync {
      defer { (since, isSeen, isTold) = (now, false, false) }
      return isTold ? .ends : nil
    }
    if isGradual { isSeen = true }
    guard let since else {
      self.since = now
      return nil
    }
    guard isSeen, !isTold, now &- since >= Self.patience else { return nil }
    isTold = true
    return .begins
  }
}

extension VideoTrack {
  /// Takes whether an access unit is a key frame, and tells of video that has none.
  mutating func watchRefresh(isSync: Bool, _ now: MonotonicTime, to out: inout [PublicationAction]) {
    switch refresh.saw(isSync: isSync, isGradual: isGradualRefresh, now: now) {
    case .begins?: out.tell(.onlyGradualRefresh)
    case .ends?: out.append(.withdraw(.onlyGradualRefresh))
    case nil: break
    }
  }
}
