/// What a publication carries beside its samples, on the timeline of its events.
package enum InBandEvent: Sendable {
  case cue(StreamCue)
  /// The newest account of the transport stream, about each second.
  case content(TransportContent)
}
