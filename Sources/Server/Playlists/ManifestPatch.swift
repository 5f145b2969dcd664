/// A patch from one manifest to a later one (ISO/IEC 23009-1 §5.15), limited to operations that all players apply alike: `S`
/// elements are removed at the front and added at the end, by position; the PatchLocation is replaced by position. The only
/// attribute that changes is MPD@publishTime, which dash.js and Shaka Player read from the patch. Any other change (a Period,
/// a bit rate, the end of the stream) needs the whole manifest.
///
/// The reasons: dash.js 5 stores a patched attribute as text and then calculates with it. Shaka Player 5 takes a path without
/// a position for the end of the list, and ignores what it does not know.
struct ManifestPatch {
  /// `add`, `replace` and `remove` elements in the order of application (RFC 5261).
  private(set) var operations: [XMLElement] = []

  /// Nil when a patch cannot express the changes.
  init?(from old: XMLElement, to new: XMLElement) {
    guard old.name == new.name, Self.publishedAttributes(old) == Self.publishedAttributes(new),
      compareChildren(old, new, at: "/\(old.name)")
    else { return nil }
    setPublishTime(of: new)
  }

  /// A patch that removes the PatchLocation, so that the player loads the whole manifest at its next update. `new` is the
  /// manifest after the patch.
  init(endingPatchesOf old: XMLElement?, to new: XMLElement) {
    operations = [XMLElement("remove", ["sel": "/MPD/PatchLocation[1]"])]
    setPublishTime(of: new)
    // Adds the segments that are available already.
    if let old { addSegments(old, new) }
  }

  private mutating func setPublishTime(of new: XMLElement) {
    operations.append(XMLElement("replace", ["sel": "/MPD/@publishTime"], text: new["publishTime"] ?? ""))
  }

  private static func publishedAttributes(_ root: XMLElement) -> [XMLElement.Attribute] {
    root.attributes.filter { $0.name != "publishTime" }
  }

  // MARK: Comparing

  /// False when the children differ in more than segments and the PatchLocation.
  private mutating func compareChildren(_ old: XMLElement, _ new: XMLElement, at path: String) -> Bool {
    if new.name == "SegmentTimeline" { return compareSegments(old.children, new.children, at: path) }
    // Clocks contain the publish time. The player has already synchronised.
    let (before, after) = (Self.withoutClocks(old.children), Self.withoutClocks(new.children))
    guard before.count == after.count else { return false }
    for (index, (one, other)) in zip(before, after).enumerated() where one != other {
      if one.name == "PatchLocation", other.name == "PatchLocation" {
        operations.append(XMLElement("replace", ["sel": "\(path)/PatchLocation[1]"], children: [other]))
        continue
      }
      guard one.name == other.name, one.attributes == other.attributes, one.text == other.text,
        compareChildren(one, other, at: "\(path)/\(Self.step(to: index, in: after))")
      else { return false }
    }
    return true
  }

  private static func withoutClocks(_ elements: [XMLElement]) -> [XMLElement] {
    elements.filter { $0.name != "UTCTiming" }
  }

  /// Segments are removed at the front and added at the end. False for any other change.
  private mutating func compareSegments(_ old: [XMLElement], _ new: [XMLElement], at path: String) -> Bool {
    guard let first = new.first, let gone = old.firstIndex(of: first),
      old[gone...].elementsEqual(new.prefix(old.count - gone))
    else { return false }
    for _ in 0..<gone { operations.append(XMLElement("remove", ["sel": "\(path)/S[1]"])) }
    add(new.dropFirst(old.count - gone), behind: old.count - gone, at: path)
    return true
  }

  private mutating func add(_ segments: ArraySlice<XMLElement>, behind count: Int, at path: String) {
    guard !segments.isEmpty else { return }
    operations.append(
      XMLElement("add", ["sel": "\(path)/S[\(count)]", "pos": "after"], children: Array(segments)))
  }

  /// The path step to a child: by its id, where it has one.
  private static func step(to index: Int, in siblings: [XMLElement]) -> String {
    let element = siblings[index]
    if let id = element["id"] { return "\(element.name)[@id='\(id)']" }
    return element.name
  }

  // MARK: New segments alone

  /// Adds the new segments of each representation; changes nothing else.
  private mutating func addSegments(_ old: XMLElement, _ new: XMLElement, at path: String = "/MPD") {
    if new.name == "SegmentTimeline" {
      guard let last = old.children.last, let known = new.children.lastIndex(of: last) else { return }
      return add(new.children[(known + 1)...], behind: old.children.count, at: path)
    }
    for (index, child) in new.children.enumerated() {
      let same = old.children.filter { $0.name == child.name && $0["id"] == child["id"] }
      guard same.count == 1, Self.carriesSegments.contains(child.name) else { continue }
      addSegments(same[0], child, at: "\(path)/\(Self.step(to: index, in: new.children))")
    }
  }

  private static let carriesSegments: Set = [
    "Period", "AdaptationSet", "Representation", "SegmentTemplate", "SegmentTimeline",
  ]
}
