/// Languages by their codes (ISO 639), as tracks and playlists name them.
package enum LanguageCode {
  /// The code of ISO 639-2/T, three letters, of a code of two or three letters or of a tag that begins with one (RFC
  /// 5646). Nil if it is none. An unknown code of three letters is kept.
  package static func three(_ text: String) -> String? {
    let code = text.prefix { $0 != "-" && $0 != "_" }.lowercased()
    guard (2...3).contains(code.utf8.count), code.utf8.allSatisfy({ (0x61...0x7A).contains($0) }) else { return nil }
    if code.utf8.count == 2 { return find(code, in: short) }
    return find(code, in: bibliographic) ?? code
  }

  /// The shortest tag of a code of three letters, as players expect it (RFC 5646 §2.2.1).
  package static func tag(_ code: String) -> String {
    code.utf8.count == 3
      ? short.split { $0.isWhitespace }.first { $0.hasSuffix(code) }.map { String($0.prefix(2)) } ?? code : code
  }

  /// The code of three letters behind `code` in a list.
  private static func find(_ code: String, in list: String) -> String? {
    list.split { $0.isWhitespace }.first { $0.hasPrefix(code) }.map { String($0.suffix(3)) }
  }

  /// Each code of two letters (ISO 639-1), followed by the one of three.
  private static let short = """
    aaaar ababk aeave afafr akaka amamh anarg arara asasm avava ayaym azaze babak bebel bgbul bhbih
    bibis bmbam bnben bobod brbre bsbos cacat ceche chcha cocos crcre csces cuchu cvchv cycym dadan
    dedeu dvdiv dzdzo eeewe elell eneng eoepo esspa etest eueus fafas ffful fifin fjfij fofao frfra
    fyfry gagle gdgla glglg gngrn guguj gvglv hahau heheb hihin hohmo hrhrv hthat huhun hyhye hzher
    iaina idind ieile igibo iiiii ikipk ioido isisl itita iuiku jajpn jvjav kakat kgkon kikik kjkua
    kkkaz klkal kmkhm knkan kokor krkau kskas kukur kvkom kwcor kykir lalat lbltz lglug lilim lnlin
    lolao ltlit lulub lvlav mgmlg mhmah mimri mkmkd mlmal mnmon mrmar msmsa mtmlt mymya nanau nbnob
    ndnde nenep ngndo nlnld nnnno nonor nrnbl nvnav nynya ococi ojoji omorm orori ososs papan pipli
    plpol pspus ptpor quque rmroh rnrun roron rurus rwkin sasan scsrd sdsnd sesme sgsag sisin skslk
    slslv smsmo snsna sosom sqsqi srsrp ssssw stsot susun svswe swswa tatam tetel tgtgk ththa titir
    tktuk tltgl tntsn toton trtur tstso tttat twtwi tytah uguig ukukr ururd uzuzb veven vivie vovol
    wawln wowol xhxho yiyid yoyor zazha zhzho zuzul
    """

  /// Each code of ISO 639-2/B that differs, followed by the one of ISO 639-2/T.
  private static let bibliographic = """
    albsqi armhye baqeus burmya chizho czeces dutnld frefra geokat gerdeu greell iceisl macmkd maomri
    maymsa perfas rumron sloslk tibbod welcym
    """
}
