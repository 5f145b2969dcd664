internal import Base
internal import Control

/// The JSON Schema (draft 2020-12) of the configuration file.
package enum ConfigSchema {
  package static var text: String {
    var root = object(.root)
    root.insert(("$schema", .text("https://json-schema.org/draft/2020-12/schema")), at: 0)
    if let place = root.firstIndex(where: { $0.0 == "properties" }), case .object(let members) = root[place].1 {
      root[place].1 = .object(members + [(KeyReading.key, keys), (HookReading.key, hooks)])
    }
    root.insert(("title", .text("Configuration of weir")), at: 1)
    return JSONTree.object(root).text(depth: 0)
  }

  private static let anyText = JSONTree.object([("type", .text("string"))])

  /// One, or a list of them.
  private static func list(_ one: JSONTree) -> JSONTree {
    .object([("anyOf", .list([one, .object([("type", .text("array")), ("minItems", .word("1")), ("items", one)])]))])
  }

  private static func oneOf(_ members: [String]) -> JSONTree {
    .list(members.map { .object([("required", .list([.text($0)]))]) })
  }

  private static var keys: JSONTree {
    .object([
      ("type", .list([.text("array"), .text("null")])), ("maxItems", .word("\(KeyReading.limit)")),
      (
        "items",
        .object([
          ("type", .text("object")), ("additionalProperties", .word("false")), ("required", .list([.text("name")])),
          (
            "properties",
            .object([
              ("name", anyText),
              (
                "key",
                .object([("type", .text("string")), ("minLength", .word("\(KeyReading.shortest)"))])
              ),
              ("sha256", .object([("type", .text("string")), ("pattern", .text("^[0-9A-Fa-f]{64}$"))])),
              ("publish", list(anyText)), ("watch", list(anyText)), ("record", list(anyText)),
              ("scope", .object([("enum", .list(AdminScope.allCases.map { .text($0.rawValue) }))])),
              ("expiresAt", anyText),
            ])
          ),
          ("oneOf", oneOf(["key", "sha256"])), ("anyOf", oneOf(["publish", "watch", "record", "scope"])),
        ])
      ),
    ])
  }

  private static var hooks: JSONTree {
    let groups = Set(EventKinds.words.compactMap { $0.split(separator: ".").first.map { "\($0).*" } }).sorted()
    let kind = JSONTree.object([("enum", .list((EventKinds.words + groups + ["*"]).map(JSONTree.text)))])
    return .object([
      ("type", .list([.text("array"), .text("null")])), ("maxItems", .word("\(HookSettings.limit)")),
      (
        "items",
        .object([
          ("type", .text("object")), ("additionalProperties", .word("false")), ("required", .list([.text("on")])),
          (
            "properties",
            .object([
              ("name", anyText), ("on", list(kind)), ("streams", list(anyText)),
              ("url", .object([("type", .text("string")), ("pattern", .text("^[Hh][Tt][Tt][Pp][Ss]?://"))])),
              ("secret", .object([("type", .text("string")), ("pattern", .text("^whsec_"))])), ("run", list(anyText)),
            ])
          ),
          ("oneOf", oneOf(["url", "run"])),
        ])
      ),
    ])
  }

  /// - Parameter canBeOff: `null` switches off what has no default.
  private static func object(_ group: ConfigGroup, canBeOff: Bool = false) -> [(String, JSONTree)] {
    if group.isOfStreams {
      return [
        ("type", .list([.text("object"), .text("null")])),
        ("propertyNames", .object([("pattern", .text("^[A-Za-z0-9*][A-Za-z0-9._*-]{0,63}$"))])),
        ("properties", .object([(StreamPattern.all.description, .object(object(.stream)))])),
        ("additionalProperties", .object(object(.stream, canBeOff: true))),
      ]
    }
    let members = group.members.map { key, member -> (String, JSONTree) in
      switch member {
      case .group(let inner): (key, .object(object(inner, canBeOff: canBeOff)))
      case .setting(let setting) where canBeOff && setting.standard == nil && !setting.isSecret:
        (key, .object([("anyOf", .list([.object(schema(of: setting)), .object([("type", .text("null"))])]))]))
      case .setting(let setting): (key, .object(schema(of: setting)))
      }
    }
    return [
      ("type", .list([.text("object"), .text("null")])), ("additionalProperties", .word("false")),
      ("properties", .object(members)),
    ]
  }

  private static func schema(of setting: any SettingDeclaration) -> [(String, JSONTree)] {
    let standard = setting.standard.map { [("default", JSONTree.text($0))] } ?? []
    let about = [("description", JSONTree.text(setting.summary))] + standard
    let one = JSONTree.object(value(setting.values))
    switch setting.shape {
    case .one: return about + value(setting.values)
    case .yesOrNo: return about + [("type", .text("boolean"))]
    case .list, .joined:
      return about + [("anyOf", .list([one, .object([("type", .text("array")), ("items", one)])]))]
    case .byName: return about + [("type", .text("object")), ("additionalProperties", one)]
    }
  }

  private static func value(_ values: SettingValues) -> [(String, JSONTree)] {
    switch values {
    // YAML reads 1.2 and 1935 as numbers and yes as a truth value, where weir reads texts.
    case .text: [("type", .list(["string", "number", "boolean"].map(JSONTree.text)))]
    case .pattern(let pattern, let orNumber):
      [
        ("type", .list((orNumber ? ["string", "integer"] : ["string"]).map(JSONTree.text))),
        ("pattern", .text(pattern)),
      ]
    case .wholeNumber(let range):
      [
        ("type", .text("integer")), ("minimum", .word("\(range.lowerBound)")),
        ("maximum", .word("\(range.upperBound)")),
      ]
    case .words(let words):
      [("enum", .list(words.map(JSONTree.text) + words.filter { Double($0) != nil }.map(JSONTree.word)))]
    }
  }
}
