import Glibc
import NIOCore

// Writes the film to the current folder, in both forms.

let film = try Film()
var fragmented = ByteBuffer()
for part in film.parts { fragmented.writeImmutableBuffer(part) }
for (name, bytes) in [("fragmented.mp4", fragmented), ("movie.mp4", film.movie)] {
  bytes.withUnsafeReadableBytes { content in
    guard let file = fopen(name, "w") else { return perror(name) }
    fwrite(content.baseAddress, 1, content.count, file)
    fclose(file)
    print("\(name): \(content.count) bytes")
  }
}
