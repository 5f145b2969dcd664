import Streams
import Testing

@Suite struct WorkerPlacesTests {
  @Test func processorsAndMemoryBoundTheWorkers() {
    #expect(WorkerPlaces.all(processors: 2, memory: nil) == 32)
    #expect(WorkerPlaces.all(processors: 2, memory: 24 << 30) == 32)
    #expect(WorkerPlaces.all(processors: 8, memory: 4 << 30) == 32)
    #expect(WorkerPlaces.all(processors: 2, memory: 1 << 30) == 8)
    #expect(WorkerPlaces.all(processors: 2, memory: 256 << 20) == 2)
    #expect(WorkerPlaces.all(processors: 1, memory: 64 << 20) == 1)
  }
}
