/// What turns one state of an XML document into another: operations of RFC 5261, each on what the ones before it left.
/// Their selectors are of the plain kind that players understand: names, `[@id='…']` where there is one, positions.
struct XMLDifference {
  /// `add`, `replace` and `remove` elements in the order in which they are to be applied.
  private(set) var operations: [XMLElement] = []

  init(from old: XMLElement, to new: XMLElement) {
    compare(old, new, at: "/\(old.name)")
  }

  private mutating func compare(_ old: XMLElement, _ new: XMLElement, at path: String) {
    guard old != new else { return }
    guard old.name == new.name, old.text == new.text else {
      operations.append(XMLElement("replace", ["sel": path], children: [new]))
      return
    }
    compareAttributes(old, new, at: path)
    compareChildren(old.children, new.children, at: path)
  }

  private mutating func compareAttributes(_ old: XMLElement, _ new: XMLElement, at path: String) {
    for attribute in old.attributes where new[attribute.name] == nil {
      operations.append(XMLElement("remove", ["sel": "\(path)/@\(attribute.name)"]))
    }
    for attribute in new.attributes {
      switch old[attribute.name] {
      case attribute.value: break
      case .some: operations.append(XMLElement("replace", ["sel": "\(path)/@\(attribute.name)"], text: attribute.value))
      case nil:
        operations.append(XMLElement("add", ["sel": path, "type": "@\(attribute.name)"], text: attribute.value))
      }
    }
  }

  // MARK: Children

  private mutating func compareChildren(_ old: [XMLElement], _ new: [XMLElement], at path: String) {
    guard old != new else { return }
    let partners = Self.partners(of: new, in: old)
    var current = old
    for index in old.indices.reversed() where !partners.contains(index) {
      operations.append(XMLElement("remove", ["sel": "\(path)/\(Self.selector(of: index, in: current))"]))
      current.remove(at: index)
    }
    let changed = new.indices.filter { partners[$0] != nil }
    for (index, source) in zip(current.indices, changed) where current[index] != new[source] {
      compare(current[index], new[source], at: "\(path)/\(Self.selector(of: index, in: current))")
      current[index] = new[source]
    }
    var index = new.startIndex
    while index < new.endIndex {
      let run = (index..<new.endIndex).prefix { partners[$0] == nil }
      if run.isEmpty {
        index += 1
      } else {
        add(new[run], to: current, at: path)
        current.insert(contentsOf: new[run], at: run.lowerBound)
        index = run.upperBound
      }
    }
  }

  /// New siblings that stand together, at their place among those that are there.
  private mutating func add(_ elements: ArraySlice<XMLElement>, to current: [XMLElement], at path: String) {
    let children = Array(elements)
    if elements.startIndex == current.endIndex {
      operations.append(XMLElement("add", ["sel": path], children: children))
    } else if elements.startIndex == 0 {
      operations.append(XMLElement("add", ["sel": path, "pos": "prepend"], children: children))
    } else {
      let sibling = Self.selector(of: elements.startIndex - 1, in: current)
      operations.append(XMLElement("add", ["sel": "\(path)/\(sibling)", "pos": "after"], children: children))
    }
  }

  /// For each new child the old one that it continues, if any; their order is the same in both.
  private static func partners(of new: [XMLElement], in old: [XMLElement]) -> [Int?] {
    var partners = [Int?](repeating: nil, count: new.count)
    // Those that can be told apart first: they hold the others in their places.
    var next = 0
    for (index, element) in new.enumerated() {
      guard let identity = identity(of: element, among: new),
        let found = old[next...].firstIndex(where: { Self.identity(of: $0, among: old) == identity })
      else { continue }
      partners[index] = found
      next = found + 1
    }
    // Between them, those of the same name in their order.
    next = 0
    for index in new.indices {
      if let partner = partners[index] {
        next = partner + 1
        continue
      }
      let limit = new.indices[index...].lazy.compactMap { partners[$0] }.first ?? old.count
      guard next < limit, new[index]["id"] == nil,
        let found = old[next..<limit].firstIndex(where: { $0.name == new[index].name && $0["id"] == nil })
      else { continue }
      partners[index] = found
      next = found + 1
    }
    return partners
  }

  /// What makes a child the same one in another state: its `id`, an `S`'s time, or that there is only one of its name.
  private static func identity(of element: XMLElement, among siblings: [XMLElement]) -> String? {
    if let id = element["id"] { return "\(element.name) \(id)" }
    if let time = element["t"] { return "\(element.name) \(time)" }
    return siblings.count { $0.name == element.name } == 1 ? element.name : nil
  }

  private static func selector(of index: Int, in siblings: [XMLElement]) -> String {
    let element = siblings[index]
    let namesakes = siblings.indices.filter { siblings[$0].name == element.name }
    if let id = element["id"], !id.contains("'"), namesakes.count(where: { siblings[$0]["id"] == id }) == 1 {
      return "\(element.name)[@id='\(id)']"
    }
    guard namesakes.count > 1, let position = namesakes.firstIndex(of: index) else { return element.name }
    return "\(element.name)[\(position + 1)]"
  }
}
