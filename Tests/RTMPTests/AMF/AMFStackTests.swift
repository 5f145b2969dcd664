import Base
@testable import RTMP
import Testing

@Suite("Values collected into containers")
struct AMFStackTests {
  private typealias Level = AMFStack.Level

  @Test func `A value without a container is the result`() throws {
    var stack = AMFStack()
    #expect(stack.result == nil && stack.top == nil)
    try stack.add(.number(1))
    #expect(stack.result == .number(1))
  }

  @Test func `Containers hold what came while they were open, under its name`() throws {
    var stack = AMFStack()
    try stack.open(Level(kind: .object))
    stack.top?.nextName = "list"
    try stack.open(Level(kind: .strictArray, remaining: 2))
    #expect(stack.top?.remaining == 2 && stack.top?.kind == .strictArray)
    try stack.add(.null)
    try stack.add(.boolean(true))
    stack.close()
    #expect(stack.result == nil)
    stack.top?.nextName = "named"
    try stack.open(Level(kind: .ecmaArray))
    stack.top?.nextName = "x"
    try stack.add(.string("y"))
    stack.close()
    // A name holds for one value.
    try stack.add(.undefined)
    stack.close()
    #expect(
      stack.result
        == .object([
          "list": .strictArray([.null, .boolean(true)]),
          "named": .ecmaArray([.init(name: "x", value: .string("y"))]), "": .undefined,
        ]))
  }

  @Test func `Closing without a container does nothing`() {
    var stack = AMFStack()
    stack.close()
    #expect(stack.result == nil)
  }

  @Test func `No more levels are opened than there may be`() throws {
    var stack = AMFStack()
    for _ in 0..<AMFLimits.depth { try stack.open(Level(kind: .object)) }
    #expect(throws: WireError(.limit, "AMF nested deeper than \(AMFLimits.depth) levels")) {
      try stack.open(Level(kind: .strictArray))
    }
    stack.close()
    #expect(throws: Never.self) { try stack.open(Level(kind: .object)) }
  }

  @Test func `Containers count as values`() throws {
    var stack = AMFStack()
    try stack.open(Level(kind: .strictArray))
    for _ in 2...AMFLimits.nodes { try stack.add(.null) }
    let tooMany = WireError(.limit, "AMF with more than \(AMFLimits.nodes) values")
    #expect(throws: tooMany) { try stack.add(.null) }
    #expect(throws: tooMany) { try stack.open(Level(kind: .object)) }
  }
}
