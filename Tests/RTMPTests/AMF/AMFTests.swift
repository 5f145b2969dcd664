import Base
import FMP4
import NIOCore
import Publishing
@testable import RTMP
import Testing

@Suite("ActionScript values")
struct AMFTests {
  private func read(_ bytes: [UInt8]) throws(WireError) -> [AMFValue] {
    var buffer = ByteBuffer(bytes: bytes)
    return try AMF0.readAll(&buffer)
  }

  private static let values: [AMFValue] = [
    .number(-1.5), .boolean(true), .string("Wörter"), .null, .undefined, .date(1_700_000_000_000),
    .object(["a": .number(1), "b": .object(["c": .string("d")]), "e": .strictArray([.null, .number(2)])]),
    .ecmaArray([.init(name: "width", value: .number(640))]), .strictArray([]),
    .string(String(repeating: "x", count: 70_000)),
  ]

  @Test func whatIsWrittenIsReadBack() throws {
    #expect(try read(RTMPScript.amf(Self.values)) == Self.values)
  }

  @Test func everyTruncationIsAnErrorOrAShorterList() {
    let bytes = RTMPScript.amf(Array(Self.values.dropLast()))
    for count in bytes.indices {
      if let values = try? read(Array(bytes[..<count])) {
        #expect(values.count < Self.values.count)
        #expect(Array(Self.values.prefix(values.count)) == values)
      }
    }
  }

  @Test func `What comes before a fault is read, of a container as well`() {
    func beginning(_ bytes: [UInt8]) -> (values: [AMFValue], fault: WireError?, isLastCut: Bool) {
      var buffer = ByteBuffer(bytes: bytes)
      return AMF0.readBeginning(&buffer)
    }
    let object: AMFValue = .object(["a": .number(1), "b": .object(["c": .null, "d": .number(2)])])
    let bytes = RTMPScript.amf([.string("x"), object])
    var read = beginning(bytes)
    #expect(read.values == [.string("x"), object] && read.fault == nil && !read.isLastCut)
    read = beginning(bytes + [0, 0, 9])
    #expect(read.values == [.string("x"), object] && read.fault?.code == .malformed && !read.isLastCut)
    read = beginning(Array(bytes.dropLast(7)))
    #expect(read.values == [.string("x"), .object(["a": .number(1), "b": .object(["c": .null])])])
    #expect(read.fault != nil && read.isLastCut)
    read = beginning(nested(17))
    #expect(read.fault?.code == .limit && read.values.count == 1)
    #expect(beginning([0xFF]).values.isEmpty)
  }

  private func nested(_ depth: Int) -> [UInt8] {
    (0..<depth).flatMap { _ in [3, 0, 1, 0x61] as [UInt8] } + [5] + (0..<depth).flatMap { _ in [0, 0, 9] as [UInt8] }
  }

  @Test func sixteenLevelsAreAcceptedAndSeventeenRefused() throws {
    #expect(try read(nested(16)).count == 1)
    #expect(throws: WireError(.limit, "AMF nested deeper than 16 levels")) { try read(nested(17)) }
    #expect(throws: WireError.self) { try read(nested(16_000)) }
  }

  @Test func fourThousandAndNinetySixValuesAreAcceptedAndOneMoreRefused() throws {
    func array(_ count: Int) -> [UInt8] {
      [0x0A] + RTMPScript.u32(UInt32(count)) + [UInt8](repeating: 5, count: count)
    }
    guard case .strictArray(let elements)? = try read(array(4095)).first else {
      Issue.record("no array")
      return
    }
    #expect(elements.count == 4095)
    #expect(throws: WireError.self) { try read(array(4096)) }
    #expect(throws: WireError.self) { try read([UInt8](repeating: 5, count: 4097)) }
  }

  @Test func aCountThatCannotBeIsRefusedBeforeAnythingIsDone() {
    #expect(throws: WireError(.malformed, "AMF array announces 4294967295 values in 1 bytes")) {
      try read([0x0A, 0xFF, 0xFF, 0xFF, 0xFF, 5])
    }
    #expect(throws: WireError.self) { try read([0x0C, 0xFF, 0xFF, 0xFF, 0xFF, 5]) }
  }

  @Test func unknownMarkersAreRefused() {
    for marker: UInt8 in [0x04, 0x0E, 0x12, 0xFF] { #expect(throws: WireError.self) { try read([marker]) } }
  }

  @Test func typedObjectsReferencesAndXMLAreRead() throws {
    #expect(
      try read([0x10, 0, 1, 0x43, 0, 1, 0x61, 5, 0, 0, 9, 0x07, 0, 0, 0x0F, 0, 0, 0, 1, 0x78]) == [
        .object(["a": .null]), .undefined, .string("x"),
      ])
  }

  @Test func valuesOfAMF3InsideAMF0AreRead() throws {
    // Integer −1, a string twice (the second time by reference), a double.
    #expect(try read([0x11, 0x04, 0xFF, 0xFF, 0xFF, 0xFF]) == [.number(-1)])
    #expect(try read([0x11, 0x04, 0x81, 0x00]) == [.number(128)])
    #expect(try read([0x11, 0x05, 0x3F, 0xF8, 0, 0, 0, 0, 0, 0]) == [.number(1.5)])
    // A dynamic object {width: 640.0, name: "width"}; the second "width" refers to the first.
    let object: [UInt8] =
      [0x11, 0x0A, 0x0B, 0x01, 0x0B] + Array("width".utf8) + [0x05, 0x40, 0x84, 0, 0, 0, 0, 0, 0]
      + [0x09] + Array("name".utf8) + [0x06, 0x00, 0x01]
    #expect(try read(object) == [.object(["width": .number(640), "name": .string("width")])])
    // An object of a class with one sealed name, and an array with a named and a counted part.
    let sealed: [UInt8] = [0x11, 0x0A, 0x13, 0x01, 0x03, 0x61, 0x03]
    #expect(try read(sealed) == [.object(["a": .boolean(true)])])
    let array: [UInt8] = [0x11, 0x09, 0x05, 0x03, 0x61, 0x01, 0x01, 0x02, 0x03]
    #expect(
      try read(array) == [
        .ecmaArray([
          .init(name: "a", value: .null), .init(name: "", value: .boolean(false)),
          .init(name: "", value: .boolean(true)),
        ])
      ])
  }

  @Test func depthAndCountsOfAMF3AreBounded() {
    let deep: [UInt8] = (0..<5000).reduce(into: [0x11]) { bytes, _ in bytes += [0x0A, 0x0B, 0x01, 0x03, 0x61] }
    #expect(throws: WireError.self) { try read(deep) }
    #expect(throws: WireError.self) { try read([0x11, 0x09, 0xFF, 0xFF, 0xFF, 0xFF, 0x01]) }
    #expect(throws: WireError.self) { try read([0x11, 0x0A, 0xFF, 0xFF, 0xFF, 0xFB, 0x01]) }
    #expect(throws: WireError.self) { try read([0x11, 0x06, 0x04]) }
  }

  @Test func theWorstMessageTakesNoTimeToSpeakOf() {
    // 64 KiB of objects and of names, as bad as the limits allow.
    let clock = ContinuousClock()
    for bytes in [nested(9000), [UInt8](repeating: 5, count: 65_536), [0x11] + [UInt8](repeating: 0x0A, count: 65_535)]
    {
      let time = clock.measure { _ = try? read(bytes) }
      #expect(time < .milliseconds(200))
    }
  }

  @Test func metadataNamesTracksAndTheirLanguages() throws {
    let object: AMFValue = .object([
      "audioTrackIdInfoMap": .ecmaArray([
        .init(name: "1", value: .object(["language": .string("en-US")])), .init(name: "2", value: .null),
        .init(name: "256", value: .null), .init(name: "x", value: .null),
      ]),
      "videoTrackIdInfoMap": .object(["1": .object(["width": .number(640)])]), "language": .string("ger"),
    ])
    let metadata = try #require(PublicationMetadata([.string("onMetaData"), object]))
    #expect(
      metadata.tracks == [
        .audio: TrackStatement(language: "deu"), TrackID(.audio, 2): TrackStatement(language: "eng"),
        TrackID(.audio, 3): TrackStatement(), TrackID(.video, 2): TrackStatement(),
      ])
  }

  @Test(
    arguments: [
      (0.1, 100), (1, 1000), (2.002, 2002), (10, 10_000), (0, nil), (0.099, nil), (10.001, nil), (60, nil), (-2, nil),
      (.nan, nil),
      (.infinity, nil),
    ] as [(Double, Int64?)])
  func theDistanceOfKeyFramesIsReadWhereALiveEncoderMayHaveIt(seconds: Double, milliseconds: Int64?) throws {
    let object: AMFValue = .object(["videokeyframe_frequency": .number(seconds)])
    let metadata = try #require(PublicationMetadata([.string("onMetaData"), object]))
    #expect(metadata.keyFrameDistance == milliseconds.map { MediaTime(milliseconds: $0) })
  }

  @Test func metadataIsReadBareWrappedAndInAMF3() throws {
    let object: AMFValue = .object([
      "framerate": .number(29.97), "videocodecid": .string("hvc1"), "audiocodecid": .number(0),
      "encoder": .string("OBS\u{7} \"30\""),
    ])
    for values in [[.string("onMetaData"), object], [.string("@setDataFrame"), .string("onMetaData"), object]] {
      let metadata = try #require(PublicationMetadata(values))
      #expect(metadata.framesPerSecond == 29.97)
      #expect(metadata.hasVideo)
      #expect(!metadata.hasAudio)
      #expect(metadata.encoder == "OBS? ?30?")
    }
    #expect(PublicationMetadata([.string("onTextData"), object]) == nil)
    #expect(PublicationMetadata([]) == nil)
  }
}
