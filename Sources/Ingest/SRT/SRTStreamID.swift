internal import Base
internal import MPEGTS
internal import Publishing

/// The stream and the key that a caller asks for by its stream ID:
///
/// - `#!::r=NAME,m=publish,s=KEY`, the form of the SRT Access Control Guidelines. Without `m` it publishes; other
///   members are ignored.
/// - `#!::bmd_uuid=…,bmd_name=…,u=ID`, as encoders of Blackmagic Design send it: `u` is what was typed as their stream key.
/// - `NAME`, `NAME?key=KEY`
/// - `publish:NAME`, `publish:NAME:USER:KEY`, `publish:NAME?key=KEY`
/// - `publish/NAME`, `HOST/live/NAME`, `srt://HOST/live/NAME`, with a query as well
///
/// `live/` before a name is ignored. `program=NUMBER` chooses a programme, `program=each` takes each as a stream of its
/// own; as a member or in the query. An ID that is none of these is decoded from percent escapes and read again.
struct SRTStreamID: Sendable, Hashable {
  var stream: StreamName
  /// The text of the key. Never printed.
  var key: String?
  var programs = ProgramChoice.first
  /// The ID named no stream, so it is the one for callers without an ID.
  var isDefault = false

  /// `standard` is the stream of callers whose ID names none; nil if they are rejected.
  init(parsing text: String, default standard: StreamName? = nil) throws(SRTRejection) {
    guard text.utf8.count <= SRTLimits.streamIDBytes else {
      throw SRTRejection(.badRequest, "the stream ID is longer than \(SRTLimits.streamIDBytes) bytes")
    }
    guard !text.isEmpty || standard != nil else {
      throw SRTRejection(
        .badRequest,
        "no stream ID came; write NAME or #!::r=NAME,m=publish, or name a stream for such callers (--srt-default-stream)"
      )
    }
    do throws(SRTRejection) {
      try self.init(reading: text, standard)
    } catch {
      let decoded = text.percentDecoded
      guard decoded != text else { throw error }
      try self.init(reading: decoded, standard)
    }
  }

  private init(reading text: String, _ standard: StreamName?) throws(SRTRejection) {
    if text.hasPrefix("#!::") {
      self = try Self(members: text.dropFirst(4), standard)
    } else if text.hasPrefix("#!") {
      throw SRTRejection(.badRequest, "the stream ID is in a form that weir does not read; write #!::r=NAME,m=publish")
    } else {
      self = try Self(plain: text[...], standard)
    }
  }

  private init(path: Substring, key: String?, _ standard: StreamName?) throws(SRTRejection) {
    let name = try Self.name(in: path)
    self.key = key.flatMap { $0.isEmpty ? nil : $0 }
    if name.isEmpty {
      guard let standard else {
        throw SRTRejection(.badRequest, "the stream ID names no stream; write NAME or #!::r=NAME,m=publish")
      }
      (stream, isDefault) = (standard, true)
      return
    }
    guard let stream = StreamName(name) else {
      throw SRTRejection(.badRequest, "the stream ID names no possible stream; a name is \(StreamName.grammar)")
    }
    self.stream = stream
  }

  /// The name in a path: what is left without `live/`, and without `publish/` or `HOST/` before that. The whole path if more is
  /// left.
  private static func name(in path: Substring) throws(SRTRejection) -> Substring {
    var segments = path.split(separator: "/")
    if segments == ["live"], path.hasSuffix("/") { return "" }
    guard let name = segments.popLast() else { return "" }
    let isLive = segments.last?.lowercased() == "live"
    if isLive { segments.removeLast() }
    switch segments.first {
    case nil: return name
    case "request"?, "read"?, "play"?, "subscribe"?: throw otherMode
    case let first?: return segments.count == 1 && (isLive || first == "publish") ? name : path
    }
  }

  private static let otherMode = SRTRejection(
    .badMode, "the stream ID asks for another mode than publish; weir takes publishers only")

  private static func programs(_ text: Substring) throws(SRTRejection) -> ProgramChoice {
    guard let choice = ProgramChoice(text) else {
      throw SRTRejection(.badRequest, "the stream ID's program is no number from 1 to 65535, and not each")
    }
    return choice
  }

  private init(members text: Substring, _ standard: StreamName?) throws(SRTRejection) {
    var (name, key, programs): (Substring?, Substring?, ProgramChoice) = (nil, nil, .first)
    var typed: Substring?
    let isBlackmagic = text.hasPrefix("bmd_") || text.contains(",bmd_")
    for member in text.split(separator: ",") {
      guard let (label, value) = member.labelled else {
        // The name of such a device may have commas.
        if isBlackmagic { continue }
        throw SRTRejection(.badRequest, "a member of the stream ID has no value; write #!::r=NAME,m=publish")
      }
      switch label {
      case "r": name = value
      case "s": key = value
      case "u": typed = value
      case "program": programs = try Self.programs(value)
      case "m" where value != "publish":
        throw SRTRejection(.badMode, "the stream ID asks for another mode than m=publish; weir takes publishers only")
      case "t" where value != "stream":
        throw SRTRejection(.media, "the stream ID asks for another type than t=stream; weir takes streams only")
      default: break
      }
    }
    if name == nil, isBlackmagic, let typed {
      self = try Self(plain: typed, standard)
      if self.key == nil, let key, !key.isEmpty { self.key = String(key) }
      return
    }
    self = try Self(path: name ?? "", key: key.map(String.init), standard)
    self.programs = programs
  }

  private init(plain text: Substring, _ standard: StreamName?) throws(SRTRejection) {
    let (path, query) = text.splitOnce(at: "?")
    var key = query.flatMap { query in
      query.split(separator: "&").first { $0.hasPrefix("key=") }.map { $0.dropFirst(4).percentDecoded }
    }
    let chosen = query?.split(separator: "&").first { $0.hasPrefix("program=") }
    let programs = try chosen.map { text throws(SRTRejection) in try Self.programs(text.dropFirst(8)) } ?? .first
    var name = path.hasPrefix("srt://") ? path.dropFirst(6) : path
    let (mode, rest) = name.splitOnce(at: ":")
    if mode == "publish", let rest {
      let parts = rest.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
      if key == nil, parts.count > 2 { key = String(parts[2]) }
      name = parts.first ?? ""
    } else if rest != nil, !name.beginsWithPort {
      throw Self.otherMode
    }
    self = try Self(path: name, key: key, standard)
    self.programs = programs
  }
}

extension Substring {
  /// The text before the first of these letters, and the one behind it; nil without that letter.
  func splitOnce(at letter: Character) -> (Substring, Substring?) {
    guard let index = firstIndex(of: letter) else { return (self, nil) }
    return (self[..<index], self[self.index(after: index)...])
  }

  /// Label and value of a member; nil if it has no value.
  var labelled: (label: Substring, value: Substring)? {
    let (label, value) = splitOnce(at: "=")
    return value.map { (label, $0) }
  }

  /// It begins with a host and a port: `HOST:8890/live/cam`.
  var beginsWithPort: Bool {
    let place = prefix { $0 != "/" }
    guard place.endIndex < endIndex, let colon = place.lastIndex(of: ":") else { return false }
    return UInt16(place[place.index(after: colon)...]) != nil
  }
}
