internal import Answers
internal import API
internal import ArgumentParser
internal import Base
internal import NIOCore
internal import Recording
internal import RecordingFiles
internal import Settings

/// `weir record list`: lists recordings from the catalogue and the files. Changes nothing.
struct RecordListCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List recordings, the newest first.",
    discussion: """
      Examples:
        weir record list
        weir record list --folder /srv/recordings --stream cam --json
      """)

  @Option(help: ArgumentHelp("Folder of the recordings (default ./recordings; WEIR_RECORD).", valueName: "folder"))
  var folder: String?
  @Option(help: ArgumentHelp("Only this stream's.", valueName: "name")) var stream: String?
  @Option(help: ArgumentHelp("Only running, completed, failed or deleted ones.", valueName: "state")) var state: String?
  @Flag(help: "Print what the API answers, as JSON.") var json = false

  func run() throws {
    let place = try folder ?? SettingSources(environment: Arguments.environment())[RecordingOptions().record]
    let query: CatalogueQuery
    do throws(ValueError) {
      query = try CatalogueQuery(stream: stream, state: state)
    } catch {
      throw ValidationError("\(error.reason). \(error.advice)")
    }
    let listing = RecordingListing(folder: place, query: query)
    let output = LogOutput.standardError
    let isTerminal = output.isTerminal
    let entries: [RecordingEntry]
    do {
      entries = try listing.read { files in
        if isTerminal { output.write("\rreading \(files) files …") }
      }
    } catch {
      throw ConfigurationError(.configuration, "\(error); name the folder with --folder")
    }
    if isTerminal { output.write("\r\u{1B}[K") }
    guard json else { return print(listing.table(entries), terminator: "") }
    let page = CataloguePage(entries: entries, next: nil, total: entries.count, isComplete: true)
    print(String(buffer: JSONText.encode(RecordingsAnswer(page))))
  }
}
