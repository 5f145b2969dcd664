internal import Logging
package import Publishing

/// Streams that are on air without a publisher: `end: never` with a fallback.
extension StreamRegistry {
  /// Where fallbacks come from. To be called once, before publishers come.
  package func use(_ fallbacks: any FallbackSources) { standIns.use(fallbacks) }

  /// Begins the streams of these names that are to be on air all the time, and are not there.
  package func open(channels names: [StreamName]) {
    for name in names.sorted() {
      let settings = settings(name)
      guard settings.end == .never, settings.isOfOneName, settings.fallback != nil else { continue }
      do throws(PublishRefusal) {
        try open(name)
      } catch {
        logger.of(name).error("is not on air: \(error.description)")
      }
    }
  }
}
