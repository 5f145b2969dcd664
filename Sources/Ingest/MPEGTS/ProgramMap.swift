internal import Base
internal import FMP4
internal import NIOCore

/// The program map of one programme: its clock and its elementary streams (ISO/IEC 13818-1 §2.4.4.8).
struct ProgramMap: Hashable {
  let program: UInt16
  /// The PID whose packets carry the clock.
  let clockPID: UInt16
  /// In the map's order, at most `MPEGTSLimits.elements`.
  let elements: [ProgramElement]

  private static let tableID: UInt8 = 2

  /// A programme without elementary streams.
  init(program: UInt16) {
    self.program = program
    clockPID = TransportPacket.nullPID
    elements = []
  }

  /// Nil if the section is not a program map that is valid now, or if it ends within a field.
  init?(_ section: PSISection) {
    guard section.tableID == Self.tableID, let header = section.long, header.isCurrent else { return nil }
    program = header.tableExtension
    var body = section.body
    guard let clock: UInt16 = body.readInteger(), let length: UInt16 = body.readInteger(),
      let common = body.readSlice(length: Int(length & 0xFFF))
    else { return nil }
    clockPID = clock & TransportPacket.range
    let descriptors = ElementDescriptors(common)
    var elements: [ProgramElement] = []
    while elements.count < MPEGTSLimits.elements, let type: UInt8 = body.readInteger(),
      let pid: UInt16 = body.readInteger(), let length: UInt16 = body.readInteger()
    {
      guard let own = body.readSlice(length: Int(length & 0xFFF)) else { return nil }
      let number = pid & TransportPacket.range
      if elements.contains(where: { $0.pid == number }) { continue }
      elements.append(
        ProgramElement(pid: number, streamType: type, ElementDescriptors(own), inProgram: descriptors))
    }
    self.elements = elements
  }
}

/// One elementary stream of a programme.
struct ProgramElement: Hashable {
  let pid: UInt16
  let streamType: UInt8
  let content: ElementContent
  /// ISO 639-2 code of three letters. Nil if the map states none.
  let language: String?
  let role: TrackRole

  init(
    pid: UInt16, streamType: UInt8, _ descriptors: ElementDescriptors, inProgram: ElementDescriptors
  ) {
    self.pid = pid
    self.streamType = streamType
    content = ElementContent(streamType, descriptors, inProgram: inProgram)
    language = descriptors.language
    role = descriptors.role
  }
}

/// What descriptors say that weir reads (ISO/IEC 13818-1 §2.6, EN 300 468 §6.2).
struct ElementDescriptors {
  private(set) var language: String?
  private(set) var role = TrackRole.main
  /// `format_identifier` of the registration.
  private(set) var registration: String?
  private(set) var tags: Set<UInt8> = []
  /// `channel_config_code` of Opus.
  private(set) var opusChannels: UInt8?

  static let ac3: UInt8 = 0x6A
  static let enhancedAC3: UInt8 = 0x7A
  static let teletext: UInt8 = 0x56
  static let subtitles: UInt8 = 0x59

  init(_ bytes: ByteBuffer) {
    var rest = bytes
    while let tag: UInt8 = rest.readInteger(), let length: UInt8 = rest.readInteger(),
      var body = rest.readSlice(length: Int(length))
    {
      tags.insert(tag)
      switch tag {
      case 0x05:
        registration = body.readBytes(length: 4).map {
          PeerText.printable(String(decoding: $0, as: UTF8.self), limit: 4)
        }
      case 0x0A:
        let code = body.readBytes(length: 3) ?? []
        let letters = code.map { $0 | 0x20 }
        if letters.count == 3, letters.allSatisfy({ (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0) }) {
          language = String(decoding: letters, as: UTF8.self)
        }
        // audio_type (§2.6.19).
        switch body.readInteger(as: UInt8.self) {
        case 2: role = .hearingImpaired
        case 3: role = .description
        default: break
        }
      // The extension descriptor of Opus in MPEG-TS.
      case 0x7F where body.readInteger(as: UInt8.self) == 0x80: opusChannels = body.readInteger()
      default: break
      }
    }
  }
}
