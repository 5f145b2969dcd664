internal import Streams

/// Frames that a stream had lost when a file of its recording began (nil before that), and at the newest fragment in it.
struct LostMeanwhile {
  var first: LostFrames?
  var seen = LostFrames()

  /// What was lost in between, for the log. Empty if it was nothing.
  var text: String {
    let lost = seen - (first ?? seen)
    return lost == LostFrames() ? "" : "; of what came meanwhile, \(lost) could not be used"
  }
}
