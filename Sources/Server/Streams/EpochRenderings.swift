/// What is made of an epoch for its viewers by a folder above, which keeps it here: it goes with the epoch. This folder knows
/// no playlist.
protocol EpochRenderings: AnyObject, Sendable {
  /// How many have been made, over the stream's life.
  var renders: Int { get }
  /// Those of the stream's next epoch.
  func next() -> any EpochRenderings
}
