/// Keeps what viewers can go back to for as long as a life of a stream lasts, whoever records it meanwhile.
final class EpochWatch: FragmentSink {
  private let epoch: String
  private let archive: RecordingArchive

  init(epoch: String, archive: RecordingArchive) {
    self.epoch = epoch
    self.archive = archive
    archive.begin(epoch: epoch)
  }

  func receive(_ event: StoredEvent) {
    if case .end = event { archive.forgetLater(epoch: epoch) }
  }
}
