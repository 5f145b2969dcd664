internal import FMP4
internal import Publishing
internal import Streams

/// Cues of SCTE 35 that a stream has carried.
struct CuesAnswer: APIObject {
  let count: Int
  let repeated: Int
  let fillers: Int
  let damaged: Int
  let encrypted: Int
  let newest: [Cue]

  static let notes: [String: FieldNote] = [
    "count": "All that could be read.",
    "repeated": "Those that came again unchanged.",
    "fillers": "Those that announce nothing: splice_null and bandwidth_reservation.",
    "damaged": "Sections of the present publication with a wrong checksum, or that end within a field.",
    "encrypted": "Those of the present publication that cannot be read.",
    "newest": "The newest ones, oldest first, without repetitions and fillers.",
  ]

  struct Cue: APIObject {
    let epoch: String
    let mediaSeconds: Double
    let wall: String?
    let pid: Int
    let command: String
    let eventID: Int?
    let cancelled: Bool
    let outOfNetwork: Bool?
    let segmentationType: Int?
    let duration: Int?
    let pts: Int?
    let immediate: Bool
    let section: String?

    static let notes: [String: FieldNote] = [
      "mediaSeconds": "The presentation time that it is for, on the timeline of the stream's media.",
      "wall": .time("The time of day of that."),
      "command": "As SCTE 35 has it, such as splice_insert and time_signal",
      "eventID": "splice_event_id, or that of the first segmentation descriptor.",
      "duration": "Ticks of 90 kHz.",
      "pts": "pts_time plus pts_adjustment: 33 bits of 90 kHz, as the publisher's transport stream has them.",
      "immediate": "It is for the moment in which it came.",
      "section": "The whole splice_info_section in base 64; null above 2048 bytes.",
    ]

    fileprivate init(_ told: StreamCues.Told) {
      let cue = told.cue
      (epoch, mediaSeconds) = (told.epoch, cue.mediaTime.thousandths)
      wall = told.wall.map(JSONText.time)
      (pid, command, eventID) = (Int(cue.pid), cue.command.name, cue.eventID.map(Int.init))
      (cancelled, outOfNetwork) = (cue.isCancelled, cue.isOutOfNetwork)
      segmentationType = cue.segmentationType.map(Int.init)
      (duration, pts) = (cue.duration.map { Int(clamping: $0) }, cue.presentation.map { Int(clamping: $0) })
      (immediate, section) = (cue.isImmediate, cue.sectionText)
    }
  }

  /// Nil if there was none.
  init?(_ cues: StreamCues, _ content: TransportContent?) {
    (damaged, encrypted) = (content?.damagedCues ?? 0, content?.encryptedCues ?? 0)
    guard cues.count > 0 || damaged > 0 || encrypted > 0 else { return nil }
    (count, repeated, fillers) = (cues.count, cues.repeated, cues.fillers)
    newest = cues.newest.map(Cue.init)
  }
}

/// What is in a publisher's transport stream.
struct TransportAnswer: APIObject {
  let program: Int?
  let programs: [Int]
  let elements: [Element]
  let otherPackets: Int

  static let notes: [String: FieldNote] = [
    "program": "The number of the programme that is published.",
    "programs": "The numbers of all programmes.",
    "elements": "By PID: those of tables, and at most 64 others.",
    "otherPackets": "Packets of PIDs that are not listed.",
  ]

  struct Element: APIObject {
    let pid: Int
    let program: Int?
    let content: String
    let kind: String?
    let taken: Bool
    let packets: Int

    static let notes: [String: FieldNote] = [
      "program": "The programme that has it; null for a PID of none.",
      "content": "What it carries, such as H.264, SCTE-35 or KLV; unknown if no table says so.",
      "kind": "video, audio, or null for what is neither.",
      "taken": "Its media is a track of the stream.",
    ]

    fileprivate init(_ element: TransportContent.Element) {
      (pid, program) = (Int(element.pid), element.program.map(Int.init))
      (content, kind, taken) = (element.name, element.kind?.rawValue, element.isTaken)
      packets = element.packets
    }
  }

  init(_ content: TransportContent) {
    (program, programs) = (content.program.map(Int.init), content.programs.map(Int.init))
    (elements, otherPackets) = (content.elements.map(Element.init), content.otherPackets)
  }
}
