package import Base
internal import NIOCore

/// How many workers may run at a time because media of publishers, or their viewers, ask for them. Those of a ladder and of audio
/// that settings ask for count with their streams.
package enum WorkerPlaces {
  /// A worker of audio takes one, one of video four.
  static let perProcessor = 16
  /// Bytes of the server's memory for each place. A worker of audio takes up to 60 MB.
  static let memoryOfEach = 128 << 20

  /// - Parameter memory: bytes that the server may have; nil if unknown.
  package static func all(processors: Int = System.coreCount, memory: Int? = MemorySources().read()?.limit) -> Int {
    let most = max(1, processors) * perProcessor
    return max(1, min(most, memory.map { $0 / memoryOfEach } ?? most))
  }
}

extension DescriptorBudget {
  /// Room for workers that become necessary while a stream runs. To be made once: all share it.
  package func makeWorkerRoom(places: Int = WorkerPlaces.all()) -> WorkerRoom { roomForWorkers.shared(places: places) }
}
