/// The stream and the key that a caller asks for by its stream ID:
///
/// - `#!::r=NAME,m=publish,s=KEY`, the form of the SRT Access Control Guidelines. Without `m` it publishes; other
///   members are ignored.
/// - `NAME`, `NAME?key=KEY`
/// - `publish:NAME`, `publish:NAME:USER:KEY`, `publish:NAME?key=KEY`
///
/// `live/` before a name is ignored. `program=NUMBER` chooses a programme, `program=each` takes each as a stream of its
/// own; as a member or in the query.
struct SRTStreamID: Sendable, Hashable {
  var stream: StreamName
  /// The text of the key. Never printed.
  var key: String?
  var programs = ProgramChoice.first

  init(parsing text: String) throws(SRTRejection) {
    guard text.utf8.count <= SRTLimits.streamIDBytes else {
      throw SRTRejection(.badRequest, "the stream ID is longer than \(SRTLimits.streamIDBytes) bytes")
    }
    if text.hasPrefix("#!::") {
      self = try Self(members: text.dropFirst(4))
    } else if text.hasPrefix("#!") {
      throw SRTRejection(.badRequest, "the stream ID is in a form that weir does not read; write #!::r=NAME,m=publish")
    } else {
      self = try Self(plain: text[...])
    }
  }

  private init(name: some StringProtocol, key: String?) throws(SRTRejection) {
    var name = name[...]
    while name.hasPrefix("/") { name = name.dropFirst() }
    if name.hasPrefix("live/") { name = name.dropFirst(5) }
    while name.hasSuffix("/") { name = name.dropLast() }
    guard !name.isEmpty else {
      throw SRTRejection(.badRequest, "the stream ID names no stream; write NAME or #!::r=NAME,m=publish")
    }
    guard let stream = StreamName(name) else {
      throw SRTRejection(.badRequest, "the stream ID names no possible stream; a name is \(StreamName.grammar)")
    }
    self.stream = stream
    self.key = key.flatMap { $0.isEmpty ? nil : $0 }
  }

  private static func programs(_ text: Substring) throws(SRTRejection) -> ProgramChoice {
    guard let choice = ProgramChoice(text) else {
      throw SRTRejection(.badRequest, "the stream ID's program is no number from 1 to 65535, and not each")
    }
    return choice
  }

  private init(members text: Substring) throws(SRTRejection) {
    var (name, key, programs): (Substring, Substring?, ProgramChoice) = ("", nil, .first)
    for member in text.split(separator: ",") {
      let parts = member.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2 else {
        throw SRTRejection(.badRequest, "a member of the stream ID has no value; write #!::r=NAME,m=publish")
      }
      switch parts[0] {
      case "r": name = parts[1]
      case "s": key = parts[1]
      case "program": programs = try Self.programs(parts[1])
      case "m" where parts[1] != "publish":
        throw SRTRejection(.badMode, "the stream ID asks for another mode than m=publish; weir takes publishers only")
      case "t" where parts[1] != "stream":
        throw SRTRejection(.media, "the stream ID asks for another type than t=stream; weir takes streams only")
      default: break
      }
    }
    self = try Self(name: name, key: key.map(String.init))
    self.programs = programs
  }

  private init(plain text: Substring) throws(SRTRejection) {
    let (path, query) = text.splitOnce(at: "?")
    var key = query.flatMap { query in
      query.split(separator: "&").first { $0.hasPrefix("key=") }.map { $0.dropFirst(4).percentDecoded }
    }
    let chosen = query?.split(separator: "&").first { $0.hasPrefix("program=") }
    let programs = try chosen.map { text throws(SRTRejection) in try Self.programs(text.dropFirst(8)) } ?? .first
    let (mode, rest) = path.splitOnce(at: ":")
    guard let rest else {
      self = try Self(name: path, key: key)
      self.programs = programs
      return
    }
    guard mode == "publish" else {
      throw SRTRejection(.badMode, "the stream ID asks for another mode than publish; weir takes publishers only")
    }
    let parts = rest.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
    if key == nil, parts.count > 2 { key = String(parts[2]) }
    self = try Self(name: parts.first ?? "", key: key)
    self.programs = programs
  }
}

extension Substring {
  /// The text before the first of these letters, and the one behind it; nil without that letter.
  fileprivate func splitOnce(at letter: Character) -> (Substring, Substring?) {
    guard let index = firstIndex(of: letter) else { return (self, nil) }
    return (self[..<index], self[self.index(after: index)...])
  }
}
