package import Publishing
package import Streams

/// Keeps the rewindable media for as long as an epoch lasts, whichever recorders write it.
package final class RewindRetention: FragmentSink {
  private let stream: StreamName
  private let epoch: String
  private let archive: RecordingArchive

  package init(stream: StreamName, epoch: String, archive: RecordingArchive) {
    self.stream = stream
    self.epoch = epoch
    self.archive = archive
    archive.begin(epoch: epoch, of: stream)
  }

  package func receive(_ event: StoredEvent) {
    if case .end = event { archive.forgetLater(epoch: epoch, of: stream) }
  }
}
