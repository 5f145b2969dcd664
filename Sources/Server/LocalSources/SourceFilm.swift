internal import Base
package import FMP4
internal import HTTP
package import Logging
internal import NIOCore
package import Publishing
package import Storage
package import Streams

/// The moving preview of a local source for its administrators, on air or off: an endless MP4. Like a recording it cuts the
/// source's samples itself, since off the air there is no stream. It exists while it is watched: otherwise
/// the source is not cut.
package final class SourceFilm: MediaSink {
  private struct State {
    /// Nil once it has ended.
    var epoch: Epoch?
    var subscribers = Subscribers()
    var viewers = 0
    var hasInit = false
  }

  private let name: StreamName
  private let logger: Logger
  private let state: RankedMutex<State>

  /// - Parameter settings: those of the stream, which also apply to the cutting of the preview.
  package init(name: StreamName, settings: StreamSettings, logger: Logger) {
    (self.name, self.logger) = (name, logger)
    state = RankedMutex(.sourceRecording, State(epoch: Epoch(id: "film", settings: settings.forOwnUse)))
  }

  package func receive(_ event: MediaEvent) -> SinkVerdict {
    state.withLock { state in
      do {
        for stored in try state.epoch?.receive(event) ?? [] {
          if case .initialization = stored {
            // A response has one init segment.
            if state.hasInit { Self.end(&state) }
            state.hasInit = true
          }
          state.subscribers.deliver(stored)
        }
      } catch {
        logger.of(name).error("the preview ends: \(error)")
        Self.end(&state)
        return .closed(.failed("\(error)"))
      }
      if case .end = event { Self.end(&state) }
      return state.epoch == nil ? .closed(.finished) : .accepted
    }
  }

  var isActive: Bool { state.withLock { $0.epoch != nil } }

  private static func end(_ state: inout State) {
    state.epoch = nil
    state.subscribers.end()
  }

  /// Starts a response on the writer's loop: the init segment and the fragments since the last key frame, then each new
  /// fragment. False if the film has ended: another one may be begun.
  func join(_ writer: LiveBodyWriter, key: ObjectIdentifier) -> Bool {
    let (place, pieces) = state.withLock { state in
      let pieces = state.epoch?.piecesSinceLastKeyFrame()
      if pieces != nil { state.viewers += 1 }
      return (pieces == nil ? nil : state.subscribers.join(on: writer.eventLoop), pieces ?? [])
    }
    guard let place else { return false }
    if !pieces.isEmpty { writer.write(pieces) }
    place.audience.add(writer, key: key, firstPosition: place.firstPosition)
    return true
  }

  /// Removes a response that has ended. Call on its loop. The film ends with its last one.
  func leave(key: ObjectIdentifier, eventLoop: any EventLoop) {
    let audience = state.withLock { state in
      state.viewers -= 1
      defer { if state.viewers == 0 { Self.end(&state) } }
      return state.subscribers.leave(eventLoop)
    }
    audience?.remove(key)
  }

  package func warn(_ warning: PublicationWarning) {}
  package func withdraw(_ warning: PublicationWarning) {}
}

/// The response to a request for a film.
package final class SourceFilmBody: LiveBody {
  private let source: LocalSource
  private let make: @Sendable () -> SourceFilm
  private let joined = RankedMutex<(film: SourceFilm, eventLoop: any EventLoop)?>(.queue, nil)

  /// - Parameter make: makes a film where none runs.
  package init(source: LocalSource, make: @escaping @Sendable () -> SourceFilm) {
    (self.source, self.make) = (source, make)
  }

  package func start(_ writer: LiveBodyWriter) {
    guard let film = source.watch(make), film.join(writer, key: ObjectIdentifier(self)) else { return writer.finish() }
    joined.withLock { $0 = (film, writer.eventLoop) }
  }

  package func stop() {
    guard let (film, eventLoop) = joined.withLock({ $0.take() }) else { return }
    film.leave(key: ObjectIdentifier(self), eventLoop: eventLoop)
  }
}

extension StreamSettings {
  /// For media of a source that no viewer of its stream is offered: a short window, without renditions.
  var forOwnUse: StreamSettings {
    var settings = self
    settings.window = MediaTime(milliseconds: 1000)
    settings.layout = .interleaved
    (settings.ladder, settings.audio) = ([], nil)
    return settings
  }
}
