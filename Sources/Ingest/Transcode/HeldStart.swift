internal import Base
internal import FMP4
internal import NIOCore
internal import Publishing

/// The start of a publication that waits for the configuration of its audio. In order; bounded.
struct HeldStart {
  enum Event {
    case media(MediaEvent)
    case inBand(InBandEvent)
  }

  private(set) var events: [Event] = []
  private(set) var bytes = 0
  private let since: MonotonicTime
  private let most: Int

  /// `most`: bytes of media that may wait, if they are fewer than usual. It is full with the first sample at the earliest.
  init(now: MonotonicTime, most: Int = .max) {
    (since, self.most) = (now, max(1, min(most, PublicationLimits.heldBytes)))
  }

  mutating func hold(_ event: MediaEvent) {
    switch event {
    // The wait is shorter than what it bounds.
    case .progress: return
    case .sample(let sample): bytes += sample.payload.readableBytes
    // What came before them says nothing without media between.
    case .tracks: if case .media(.tracks)? = events.last { events.removeLast() }
    case .clock, .discontinuity: guard !isFull else { return }
    case .end: break
    }
    events.append(.media(event))
  }

  /// What is beyond the bounds is dropped: without video the wait lasts until the audio is there.
  mutating func hold(_ event: InBandEvent) {
    guard !isFull else { return }
    switch event {
    case .cue(let cue): bytes += cue.section.count
    case .content(let content): bytes += content.elements.count * MemoryLayout<TransportContent.Element>.stride
    case .captions, .keyFrameDistance, .mendedTime, .early, .correctedAudio: break
    }
    events.append(.inBand(event))
  }

  /// Nothing more is waited for.
  func isOver(now: MonotonicTime) -> Bool {
    isFull || now &- since >= PublicationLimits.announcedTrackWait &* 1_000_000
  }

  private var isFull: Bool {
    events.count >= PublicationLimits.heldSamples || bytes >= most
  }
}
