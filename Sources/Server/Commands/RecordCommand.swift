internal import Answers
internal import ArgumentParser
internal import Base
internal import Recording
internal import RecordingFiles
internal import RecordingFormat

/// `weir record`: work on recordings without a server.
struct RecordCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "record", abstract: "List, check, finish and cut recordings; the server need not run.",
    discussion: """
      The commands also take fragmented MP4 from other programs (ffmpeg's
      -movflags frag_keyframe+empty_moov, OBS's fragmented and hybrid MP4) with
      H.264, HEVC, AV1, AAC and Opus, and say where they cannot.
      """,
    subcommands: [
      RecordListCommand.self, RecordVerifyCommand.self, RecordFinalizeCommand.self, RecordClipCommand.self,
    ])
}

/// Options shared by the commands below.
struct RecordOutputOptions: ParsableArguments {
  @Flag(help: "Print the result as JSON, and no progress.") var json = false
}

/// `weir record verify`
struct RecordVerifyCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify", abstract: "Read every fragment, compare its checksum and say what is whole.",
    discussion: """
      Weir keeps a checksum of each fragment; files of other programs have none, and
      only their heads are looked at.

      Examples:
        weir record verify recordings/cam/20261121T072410Z.mp4
        weir record verify --heads recordings/cam/*.mp4

      Exit status 1 when something is damaged.
      """)

  @Argument(help: "Recordings, finished or not.") var files: [String]
  @Flag(help: "Read only the fragments' headers: quick, but damaged media goes unnoticed.") var heads = false
  @OptionGroup var output: RecordOutputOptions

  func run() throws {
    var report = CommandReport(json: output.json)
    for path in files {
      report.add {
        let progress = ProgressLine(label: "checking \(LogText.escaped(path))", isShown: !output.json)
        defer { progress.finish() }
        let check = try RecordingCheck(path: path, depth: heads ? .heads : .media, progress: progress.update)
        return CommandReport.Entry(text: check.text, answer: Verified(check), isGood: check.isGood)
      }
    }
    try report.conclude()
  }
}

/// `weir record finalize`
struct RecordFinalizeCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "finalize", abstract: "Make ordinary movies of fragmented files, in place.",
    discussion: """
      The head goes in front without moving the media where the file system can
      (ext4, xfs); elsewhere the file is copied. Folders are searched for what a
      server left: *.part.mp4.

      Examples:
        weir record finalize recordings/
        weir record finalize obs.mp4
      """)

  @Argument(help: "Files, or folders of recordings.") var paths: [String]
  @OptionGroup var output: RecordOutputOptions

  func run() throws {
    var report = CommandReport(json: output.json)
    for path in try paths.flatMap(FragmentedFile.search) {
      report.add {
        let progress = ProgressLine(label: "finishing \(LogText.escaped(path))", isShown: !output.json)
        defer { progress.finish() }
        let result = try FragmentedFile.finalize(path, progress: progress.update)
        let answer = Finalized(file: path, result: result.way, seconds: result.seconds)
        return CommandReport.Entry(text: result.text, answer: answer, isGood: true)
      }
    }
    try report.conclude()
  }
}

/// `weir record clip`
struct RecordClipCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "clip", abstract: "Cut a stretch out of a recording, exact to the frame, without encoding.",
    discussion: """
      Examples:
        weir record clip cam.mp4 --from 90 --to 150.5 -o goal.mp4
        weir record clip cam.mp4 --from 00:01:30 --to 2:30.5 -o goal.mp4
        weir record clip cam.mp4 --from 2026-11-21T07:30:00Z -o rest.mp4

      Files of other programs tell no time of day: their clips are cut by seconds,
      unless the file has a recording's name (20261121T072410Z.mp4).
      """)

  @Argument(help: "A recording, finished or not.") var file: String
  @Option(help: "Where it begins: seconds, h:mm:ss, or a UTC time.") var from: String?
  @Option(help: "Where it ends: seconds, h:mm:ss, or a UTC time.") var to: String?
  @Option(name: [.customShort("o"), .long], help: "The new file; it must not be there yet.") var out: String
  @OptionGroup var output: RecordOutputOptions

  func run() throws {
    var report = CommandReport(json: output.json)
    report.add {
      let progress = ProgressLine(label: "writing \(LogText.escaped(out))", isShown: !output.json)
      defer { progress.finish() }
      let clip = try ClipFile.write(file, from: from, to: to, out: out, progress: progress.update)
      let answer = Clipped(file: out, seconds: clip.seconds, bytes: clip.bytes)
      return CommandReport.Entry(text: clip.text, answer: answer, isGood: true)
    }
    try report.conclude()
  }
}

// MARK: As JSON

private struct Verified: Encodable {
  let file: String
  let ok: Bool
  let kind: String
  let fragments: Int
  let samples: Int
  let seconds: Double
  let wholeBytes: UInt64
  let tornBytes: UInt64
  let holes: Int
  let comparedFragments: Int?
  let damagedFragments: Int?

  init(_ check: RecordingCheck) {
    (file, ok, kind, seconds) = (check.path, check.isGood, check.kind.rawValue, check.seconds)
    (fragments, samples, holes) = (check.fragments, check.samples, check.holes)
    (wholeBytes, tornBytes) = (check.wholeBytes, check.tornBytes)
    (comparedFragments, damagedFragments) = (check.comparison?.compared, check.comparison?.different)
  }
}

private struct Finalized: Encodable {
  let file: String
  let ok = true
  let result: String
  let seconds: Double?
}

private struct Clipped: Encodable {
  let file: String
  let ok = true
  let seconds: Double
  let bytes: Int
}
