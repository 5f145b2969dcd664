@testable import MPEGTS
import Testing

@Suite struct ProgramChoiceTests {
  @Test func `A number from 1 to 65535 or each is a choice, and nothing else`() {
    #expect(ProgramChoice("1") == .number(1) && ProgramChoice("65535") == .number(65535))
    #expect(ProgramChoice("each") == .each)
    for text in ["", "0", "65536", "-1", "all", "Each", "1 ", "first"] {
      #expect(ProgramChoice(text) == nil, "\(text)")
    }
  }

  @Test(arguments: [ProgramChoice.first, .number(1), .number(65535), .each, .all])
  func `A choice survives the way to the worker`(_ choice: ProgramChoice) {
    #expect(ProgramChoice(code: choice.code) == choice)
  }

  @Test(arguments: [0x1_0002, UInt32.max]) func `Other codes are no choice`(_ code: UInt32) {
    #expect(ProgramChoice(code: code) == nil)
  }
}
