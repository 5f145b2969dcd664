import Testing

@testable import Ingest

/// What callers ask for by their stream IDs.
@Suite struct SRTStreamIDTests {
  private static let readable: [(String, String, String?)] = [
    ("cam", "cam", nil), ("/live/cam", "cam", nil), ("live/cam/", "cam", nil), ("cam?key=a%3Db", "cam", "a=b"),
    ("publish:cam", "cam", nil), ("publish:cam:user:pass:word", "cam", "pass:word"), ("publish:cam:user", "cam", nil),
    ("publish:live/cam?key=KEY", "cam", "KEY"), ("cam?other=1&key=KEY", "cam", "KEY"), ("cam?key=", "cam", nil),
    ("#!::r=cam,m=publish", "cam", nil), ("#!::m=publish,u=me,r=live/cam,s=KEY=,h=host,x=y", "cam", "KEY="),
    ("#!::r=cam", "cam", nil), ("#!::r=cam,t=stream,s=", "cam", nil),
  ]

  @Test func aStreamIDNamesAStreamAndAKey() throws {
    for (text, name, key) in Self.readable {
      let id = try SRTStreamID(parsing: text)
      #expect(id.stream.description == name, "\(text)")
      #expect(id.key == key, "\(text)")
    }
  }

  @Test func `A programme is chosen by its number`() throws {
    for text in ["#!::r=cam,m=publish,program=7", "cam?program=7", "publish:cam?key=k&program=7"] {
      #expect(try SRTStreamID(parsing: text).programs == .number(7), "\(text)")
    }
    for text in ["#!::r=cam,m=publish,program=each", "cam?program=each", "publish:cam?key=k&program=each"] {
      #expect(try SRTStreamID(parsing: text).programs == .each, "\(text)")
    }
    #expect(try SRTStreamID(parsing: "cam").programs == .first)
  }

  private static let unreadable: [(String, Int32)] = [
    ("", 1400), ("#!::", 1400), ("#!::r=", 1400), ("#!::m=publish", 1400), ("#!::r=cam,publish", 1400),
    ("#!:{r: cam}", 1400), ("a b", 1400), ("../cam", 1400), ("publish:", 1400), ("ca\u{E9}m", 1400), ("live/", 1400),
    ("cam?program=0", 1400), ("cam?program=all", 1400), ("#!::r=cam,program=", 1400), ("#!::r=cam,program=65536", 1400),
    ("read:cam", 1405), ("#!::r=cam,m=request", 1405),
    ("#!::r=cam,m=bidirectional", 1405),
    ("#!::r=cam,t=file,m=publish", 1415), (String(repeating: "a", count: 65), 1400),
    (String(repeating: "a", count: 513), 1400), ("#!::" + String(repeating: ",", count: 508), 1400),
  ]

  @Test func othersAreRejectedWithACode() {
    for (text, code) in Self.unreadable {
      #expect("\(text)") { _ = try SRTStreamID(parsing: text) } throws: { ($0 as? SRTRejection)?.code.rawValue == code }
    }
  }
}
