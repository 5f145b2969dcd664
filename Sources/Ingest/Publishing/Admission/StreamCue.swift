package import FMP4

/// A cue of SCTE 35 in a publication: what is to happen, and when.
package struct StreamCue: Sendable, Hashable {
  /// `splice_command_type` (ANSI/SCTE 35 §9.6.1).
  package enum Command: UInt8, Sendable, Hashable {
    case null = 0
    case schedule = 4
    case insert = 5
    case timeSignal = 6
    case bandwidthReservation = 7
    case privateCommand = 255

    /// As the standard has it.
    package var name: String {
      switch self {
      case .null: "splice_null"
      case .schedule: "splice_schedule"
      case .insert: "splice_insert"
      case .timeSignal: "time_signal"
      case .bandwidthReservation: "bandwidth_reservation"
      case .privateCommand: "private_command"
      }
    }

    /// Announces nothing: it keeps the PID alive.
    package var isFiller: Bool { self == .null || self == .bandwidthReservation }
  }

  /// The presentation time that the cue is for, on the timeline of the publication's samples.
  package var mediaTime: MediaTime
  package var pid: UInt16
  package var command: Command
  /// `splice_event_id`, or `segmentation_event_id` of the first segmentation descriptor.
  package var eventID: UInt32?
  package var isCancelled = false
  /// `out_of_network_indicator` of an insertion.
  package var isOutOfNetwork: Bool?
  /// `segmentation_type_id` of the first segmentation descriptor.
  package var segmentationType: UInt8?
  /// Ticks of 90 kHz.
  package var duration: UInt64?
  /// `pts_time` plus `pts_adjustment`: 33 bits of 90 kHz. Nil if the cue is for the moment in which it comes.
  package var presentation: UInt64?
  /// The whole section, with its checksum: at most 4096 bytes.
  package var section: [UInt8]

  package init(
    mediaTime: MediaTime = .zero, pid: UInt16, command: Command, presentation: UInt64? = nil, section: [UInt8]
  ) {
    self.mediaTime = mediaTime
    self.pid = pid
    self.command = command
    self.presentation = presentation
    self.section = section
  }
}
