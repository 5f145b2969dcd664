@testable import HTTP
import NIOCore
import ServerSupport
import Storage
import Testing

@Suite struct HTTPRequestTargetTests {
  @Test(arguments: [
    ("/", [], ""),
    ("/live/cam/index.m3u8", ["live", "cam", "index.m3u8"], ""),
    ("/watch/cam?player=mse&a=1", ["watch", "cam"], "player=mse&a=1"),
    ("/a%20b/%C3%A9?x=%2F", ["a b", "é"], "x=%2F"),
    ("http://host:8080/live/cam", ["live", "cam"], ""),
    ("HTTPS://host/a?b", ["a"], "b"),
    ("http://host", [], ""),
    ("/a?b#c", ["a"], "b"),
    ("/...", ["..."], ""),
  ])
  func isTakenApart(target: String, segments: [String], query: String) throws {
    let parsed = try RequestTarget(parsing: target)
    #expect(parsed.segments == segments)
    #expect(parsed.rawQuery == query)
  }

  @Test(arguments: [
    ("/a/", true), ("/a/b/?c", true), ("http://host/a/", true), ("/", false), ("http://host/", false), ("/a", false),
    ("/a?b/", false),
  ])
  func tellsASlashAtItsEnd(target: String, endsWithSlash: Bool) throws {
    let parsed = try RequestTarget(parsing: target)
    #expect(parsed.endsWithSlash == endsWithSlash)
    #expect(!parsed.segments.contains(""))
  }

  @Test(arguments: [
    ("/a/../b", RequestTarget.Refusal.hostile), ("/./a", .hostile), ("/%2e%2e/etc/passwd", .hostile),
    ("/a%2Fb", .hostile), ("/a%5cb", .hostile), ("/a\\b", .hostile), ("/a%00b", .hostile), ("/a%0d%0ab", .hostile),
    ("/a%7f", .hostile), ("//a", .emptySegment), ("/a//b", .emptySegment), ("//", .emptySegment),
    ("/a//", .emptySegment),
    ("/a%", .malformed), ("/a%4", .malformed), ("/a%zz", .malformed), ("/%c3%28", .malformed), ("/%ff", .malformed),
    ("", .malformed), ("a/b", .malformed), ("ftp://host/a", .malformed), ("*", .malformed),
  ])
  func isRefused(target: String, refusal: RequestTarget.Refusal) {
    #expect(throws: refusal) { try RequestTarget(parsing: target) }
  }

  @Test func mayHaveAsManyBytesAsTheLimitAndNotOneMore() throws {
    let longest = "/" + String(repeating: "a", count: 99)
    #expect(try RequestTarget(parsing: longest, maximumBytes: 100).segments.count == 1)
    #expect(throws: RequestTarget.Refusal.tooLong(101)) { try RequestTarget(parsing: longest + "a", maximumBytes: 100) }
  }

  @Test func hasTheValuesOfItsQueryDecoded() throws {
    let target = try RequestTarget(parsing: "/a?x=1&y=a%26b+c&x=2&flag&=z&bad=%zz")
    #expect(target.query("x") == "1")
    #expect(target.query("y") == "a&b c")
    #expect(target.query("flag") == "")
    #expect(target.query("none") == nil)
    #expect(target.query("bad") == nil)
  }

  @Test func hasTheNamesOfItsQueryAsTheyAreWritten() throws {
    let target = try RequestTarget(parsing: "/a?%5FHLS_msn=1&_hls_msn=2&_HLS_msn%3D=3&a+b=4&_HLS_msn=%35&_HLS_msn=6")
    #expect(target.query("_HLS_msn") == "5")
    #expect(target.query("%5FHLS_msn") == "1")
    #expect(target.query("a b") == nil)
    #expect(try RequestTarget(parsing: "/a?%5FHLS_skip=YES").query("_HLS_skip") == nil)
  }

  @Test func showsNoQueryInItsPath() throws {
    #expect(try RequestTarget(parsing: "/live/cam?key=secret").path == "/live/cam")
  }
}

@Suite struct HTTPByteRangeTests {
  @Test(arguments: [
    ("bytes=0-0", ByteRange.part(0..<1)), ("bytes=0-99", .part(0..<100)), ("bytes=0-100", .part(0..<100)),
    ("bytes=99-", .part(99..<100)), ("bytes=99-99", .part(99..<100)), ("bytes=100-", .unsatisfiable),
    ("bytes=100-200", .unsatisfiable), ("bytes=-1", .part(99..<100)), ("bytes=-100", .part(0..<100)),
    ("bytes=-101", .part(0..<100)), ("bytes=-0", .unsatisfiable), ("Bytes= 1 - 2 ", .part(1..<3)),
    ("bytes=5-4", .whole), ("bytes=-", .whole), ("bytes=", .whole), ("bytes", .whole), ("lines=0-1", .whole),
    ("bytes=0-1,3-4", .whole), ("bytes=a-b", .whole), ("bytes=--1", .whole), ("bytes=0x0-1", .whole),
    ("bytes=99999999999999999999-", .unsatisfiable), ("bytes=0-99999999999999999999", .part(0..<100)),
    ("bytes=9223372036854775807-9223372036854775807", .unsatisfiable),
  ])
  func ofAHundredBytes(field: String, range: ByteRange) {
    #expect(ByteRange(field, length: 100) == range)
  }

  @Test func ofNothingIsNeverSatisfied() {
    #expect(ByteRange("bytes=0-", length: 0) == .unsatisfiable)
    #expect(ByteRange("bytes=-1", length: 0) == .unsatisfiable)
  }

  @Test func aThousandRangesAreTheWhole() {
    #expect(ByteRange("bytes=" + (0..<1000).map { "\($0)-\($0)" }.joined(separator: ","), length: 5000) == .whole)
  }

  @Test func slicesPiecesAtEveryBoundary() throws {
    let file = try memoryFile(100)
    let pieces: [BodyPiece] = [
      .bytes(ByteBuffer(bytes: patternBytes(0..<10))), .file(FileRange(file: file, offset: 10, length: 20)),
      .bytes(ByteBuffer(bytes: patternBytes(30..<31))), .file(FileRange(file: file, offset: 31, length: 69)),
    ]
    let boundaries = [0, 1, 9, 10, 11, 29, 30, 31, 32, 98, 99, 100]
    for lower in boundaries.dropLast() {
      for upper in boundaries where upper > lower {
        let slice = pieces.slice(lower..<upper)
        #expect(slice.totalLength == upper - lower)
        var position = lower
        for piece in slice {
          switch piece {
          case .bytes(let bytes):
            #expect(Array(bytes.readableBytesView) == patternBytes(position..<position + bytes.readableBytes))
          case .file(let range): #expect(range.offset == position)
          }
          #expect(piece.length > 0)
          position += piece.length
        }
      }
    }
  }
}

@Suite struct HTTPDateTests {
  @Test(arguments: [
    (Int64(0), "Thu, 01 Jan 1970 00:00:00 GMT"), (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
    (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"), (951_868_799, "Tue, 29 Feb 2000 23:59:59 GMT"),
    (951_868_800, "Wed, 01 Mar 2000 00:00:00 GMT"), (1_795_246_565, "Sat, 21 Nov 2026 07:36:05 GMT"),
    (4_107_542_399, "Sun, 28 Feb 2100 23:59:59 GMT"), (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
    (-1, "Wed, 31 Dec 1969 23:59:59 GMT"),
  ])
  func isAnIMFFixdate(second: Int64, text: String) {
    #expect(HTTPDate(second: second).text == text)
    #expect(text.utf8.count == HTTPDate.length)
  }
}

@Suite struct HTTPEntityTagTests {
  @Test(arguments: [
    ("\"a\"", true), ("W/\"a\"", true), ("*", true), ("\"b\", \"a\"", true), ("\"b\",W/\"a\" ", true),
    ("\"b\"", false), ("a", false), ("", false), ("\"aa\"", false),
  ])
  func ifNoneMatchComparesWeakly(condition: String, matches: Bool) {
    #expect(EntityTag.list(condition, contains: "\"a\"") == matches)
  }

  @Test(arguments: [
    ("\"a\"", true), ("W/\"a\"", false), ("Sun, 06 Nov 1994 08:49:37 GMT", false), ("*", false), (" \"a\" ", true),
  ])
  func ifRangeComparesStrongly(condition: String, matches: Bool) {
    #expect(EntityTag.condition(condition, isExactly: "\"a\"") == matches)
  }
}

@Suite struct HTTPGzipTests {
  @Test(arguments: [
    ("gzip", true), ("gzip, deflate, br", true), ("br;q=1.0, gzip;q=0.8, *;q=0.1", true), ("*", true),
    ("GZIP", true), ("identity", false), ("", false), ("gzip;q=0", false), ("gzip; q=0.000", false),
    ("gzip;q=0.001", true), ("*;q=0", false), ("gzip;q=0, *", false), ("*;q=0, gzip", true), ("deflate", false),
  ])
  func isUsedWhenItIsAccepted(field: String, accepted: Bool) {
    #expect(Gzip.isAccepted(field) == accepted)
  }
}
