@testable import MPEGTS
import Publishing
@testable import SRT
import Testing

/// What callers ask for by their stream IDs.
@Suite struct SRTStreamIDTests {
  private static let readable: [(String, String, String?)] = [
    ("cam", "cam", nil), ("/live/cam", "cam", nil), ("live/cam/", "cam", nil), ("cam?key=a%3Db", "cam", "a=b"),
    ("publish:cam", "cam", nil), ("publish:cam:user:pass:word", "cam", "pass:word"), ("publish:cam:user", "cam", nil),
    ("publish:live/cam?key=KEY", "cam", "KEY"), ("cam?other=1&key=KEY", "cam", "KEY"), ("cam?key=", "cam", nil),
    ("#!::r=cam,m=publish", "cam", nil), ("#!::m=publish,u=me,r=live/cam,s=KEY=,h=host,x=y", "cam", "KEY="),
    ("#!::r=cam", "cam", nil), ("#!::r=cam,t=stream,s=", "cam", nil),
    // Blackmagic Design: what is typed as the stream key is `u`.
    ("#!::bmd_uuid=0e1df79f-77e6-465c-b099-29a616e964f7,bmd_name=Web Presenter,u=cam", "cam", nil),
    ("#!::bmd_uuid=0e1df79f,bmd_name=Stage, left,u=live/cam?key=KEY", "cam", "KEY"),
    ("#!::u=cam?key=a%3Db,bmd_name=x,bmd_uuid=y", "cam", "a=b"), ("#!::bmd_uuid=y,u=cam,s=KEY", "cam", "KEY"),
    ("#!::bmd_uuid=0e1df79f,bmd_name=x,r=cam,m=publish,s=KEY", "cam", "KEY"),
    // Other servers' forms.
    ("publish/live/cam", "cam", nil), ("publish/cam?key=KEY", "cam", "KEY"), ("host.example/live/cam", "cam", nil),
    ("192.0.2.1:8890/live/cam?key=KEY", "cam", "KEY"), ("srt://host:8890/live/cam", "cam", nil),
    ("srt://[::1]:8890/live/cam", "cam", nil), ("#!::r=host/live/cam,m=publish", "cam", nil), ("LIVE/cam", "cam", nil),
    ("live", "live", nil), ("publish:live", "live", nil), ("live/live", "live", nil),
    // Escapes of the whole.
    ("live%2Fcam", "cam", nil), ("publish%3Acam%3Auser%3AKEY", "cam", "KEY"), ("cam%3Fkey%3Da%253Db", "cam", "a=b"),
    ("%23!::r%3Dlive%2Fcam%2Cm%3Dpublish%2Cs%3DKEY", "cam", "KEY"),
    ("srt%3A%2F%2Fhost%3A9999%2Flive%2Fcam", "cam", nil),
    ("#!::r=cam,s=a%3Db", "cam", "a%3Db"),
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
    ("a/b/live/cam", 1400), ("host/app/cam", 1400), ("live/a/b", 1400), ("#!::bmd_uuid=1,bmd_name=x", 1400),
    ("#!::u=cam", 1400), ("%2e%2e/live/cam%00", 1400), ("ca%6", 1400), ("play/live/cam", 1405), ("request/cam", 1405),
    ("host:port/live/cam", 1405), ("#!::bmd_uuid=1,bmd_name=x,u=cam,m=request", 1405), ("read%3Acam", 1405),
    ("read:cam", 1405), ("#!::r=cam,m=request", 1405),
    ("#!::r=cam,m=bidirectional", 1405),
    ("#!::r=cam,t=file,m=publish", 1415), (String(repeating: "a", count: 65), 1400),
    (String(repeating: "a", count: 513), 1400), ("#!::" + String(repeating: ",", count: 508), 1400),
  ]

  @Test func `A caller whose ID names no stream has the one for such callers`() throws {
    let stage = StreamName("stage")
    for text in ["", "#!::", "#!::m=publish", "live/", "?key=KEY", "publish:"] {
      let id = try SRTStreamID(parsing: text, default: stage)
      #expect(id.stream == stage && id.isDefault, "\(text)")
    }
    #expect(try SRTStreamID(parsing: "?key=KEY", default: stage).key == "KEY")
    #expect(try SRTStreamID(parsing: "cam", default: stage).stream.description == "cam")
    for text in ["a b", "read:cam", "#!::r=a b"] {
      #expect(throws: SRTRejection.self) { try SRTStreamID(parsing: text, default: stage) }
    }
  }

  @Test func `An ID is shown without what may be a secret in it`() {
    let shown: [(String, String)] = [
      ("", ""), ("cam", "cam"), ("a b", "a***"), ("host/app/cam", "host/app/cam"), ("cam?key=SECRET", "cam***"),
      ("publish:cam:me:SECRET", "publish:cam***"), ("read:cam", "read:cam"), ("cam:SECRET", "cam***"),
      ("r=cam,s=SECRET", "r***"), ("cam&key=SECRET", "cam***"), ("me:SECRET@host/live/cam", "me***"),
      ("srt://host:8890/app/cam?key=SECRET", "srt://host:8890/app/cam***"), ("#!:{r: cam, s: SECRET}", "***"),
      ("#!::r=a b,m=publish,s=SECRET", "#!::r=a***,m=publish,s=***"),
      ("#!::r=cam,m=publish,u=SECRET", "#!::r=cam,m=publish,u=***"),
      ("#!::bmd_name=x,u=SECRET,r=cam", "#!::bmd_name=x,u=***,r=cam"),
      ("#!::r=cam,s=a,SECRET=", "#!::r=cam,s=***,***"), ("#!::x y=SECRET,SECRET", "#!::***,***"),
      (
        "#!::bmd_uuid=0e1d-f7,bmd_name=Web Presenter,u=a b?key=SECRET",
        "#!::bmd_uuid=0e1d-f7,bmd_name=Web Presenter,u=a***"
      ),
      ("cam%3Fkey%3DSECRET", "cam***"), ("cam%253Fkey%253DSECRET", "cam***"),
      ("%23!::r=cam,s%3DSECRET", "#!::r=cam,s=***"),
      ("ca\u{E9}m", "ca***"), (String(repeating: "a", count: 600), String(repeating: "a", count: 512)),
    ]
    for (text, expected) in shown {
      #expect(SRTStreamID.shown(text) == expected, "\(text)")
      #expect(!SRTStreamID.shown(text).contains("SECRET"))
    }
  }

  @Test func othersAreRejectedWithACode() {
    for (text, code) in Self.unreadable {
      #expect("\(text)") { _ = try SRTStreamID(parsing: text) } throws: { ($0 as? SRTRejection)?.code.rawValue == code }
    }
  }
}
