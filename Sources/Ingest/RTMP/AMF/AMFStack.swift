internal import Base

/// Collects values into containers without recursion. `AMFLimits` bounds the depth and the number of values.
struct AMFStack {
  enum Kind { case object, ecmaArray, strictArray }

  /// An open container.
  struct Level {
    var kind: Kind
    var properties: [AMFValue.Property] = []
    /// Number of missing elements, if the container states their number.
    var remaining: Int?
    /// Names of the first values of an AMF3 object, which have no names in the data. In reverse order.
    var sealedNames: [String] = []
    /// Whether named values follow the counted ones.
    var isDynamic = true
    /// Name of the next value.
    var nextName = ""
  }

  private var levels: [Level] = []
  private var nodes = 0
  /// The outermost value once it is complete.
  private(set) var result: AMFValue?

  /// The innermost open container.
  var top: Level? {
    get { levels.last }
    _modify {
      var level = levels.popLast()
      yield &level
      if let level { levels.append(level) }
    }
  }

  mutating func open(_ level: Level) throws(WireError) {
    try count()
    guard levels.count < AMFLimits.depth else {
      throw WireError(.limit, "AMF nested deeper than \(AMFLimits.depth) levels")
    }
    levels.append(level)
  }

  mutating func close() {
    guard let level = levels.popLast() else { return }
    switch level.kind {
    case .object: attach(.object(level.properties))
    case .ecmaArray: attach(.ecmaArray(level.properties))
    case .strictArray: attach(.strictArray(level.properties.map(\.value)))
    }
  }

  mutating func add(_ value: AMFValue) throws(WireError) {
    try count()
    attach(value)
  }

  private mutating func count() throws(WireError) {
    nodes += 1
    guard nodes <= AMFLimits.nodes else {
      throw WireError(.limit, "AMF with more than \(AMFLimits.nodes) values")
    }
  }

  private mutating func attach(_ value: AMFValue) {
    guard !levels.isEmpty else {
      result = value
      return
    }
    let last = levels.count - 1
    levels[last].properties.append(AMFValue.Property(name: levels[last].nextName, value: value))
    levels[last].nextName = ""
  }
}
