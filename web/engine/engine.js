/** The interface of a playback engine: it plays one stream in a video element. */

/** @typedef {import("../media/playback-result.js").PlaybackResult} PlaybackResult */
/** @typedef {import("../media/live-window.js").Quality} Quality */
/** @typedef {import("../media/live-window.js").Audio} Audio */

/**
 * @typedef {object} Engine
 * @property {"native" | "mse" | "hls" | "webrtc"} name "mse": `stream.mp4` at the live edge. "hls": HLS parts at the live edge.
 *   "native": the browser's own player. "webrtc": WebRTC, with the lowest delay.
 * @property {string} source How media is delivered, as text for the details panel.
 * @property {string[]} codecs RFC 6381 strings of the tracks that play.
 * @property {number} stalls How often playback stalled.
 * @property {number | null} bytes Bytes of media received; null where the browser does not report it.
 *
 * @property {Quality[]} qualities Qualities to choose from; empty if there is only one, or if the browser chooses.
 * @property {string} quality Name of the quality that plays; "" for the publisher's.
 * @property {boolean} isAutomatic Whether the quality follows the throughput of the connection.
 * @property {(name: string | null) => Promise<void>} chooseQuality Null: automatic. Throws if the quality is not available.
 *
 * @property {Audio[]} audios Audio tracks to choose from; empty if there is only one, or if the browser chooses.
 * @property {string} audio Name of the audio that plays.
 * @property {(name: string) => Promise<void>} chooseAudio The choice is remembered. Throws if it is not available.
 *
 * @property {{start: number, end: number} | null} range Seconds of media that can be sought to; null while unknown.
 * @property {number} behind Seconds between the playhead and the newest media.
 * @property {number} liveTolerance Seconds behind the newest media up to which the viewer counts as live.
 * @property {number | null} target Seconds of media kept ahead of the playhead at the edge; null if the browser decides.
 * @property {boolean} isFollowed Whether the viewer follows the live edge.
 * @property {boolean} playsFromWindow Whether media of the window is left to play, even if the stream has ended.
 * @property {() => void} onPlayRequest Called when a seek or "go live" needs `play` to be called again.
 * @property {(time: number) => void} seek `time`: seconds of media.
 * @property {() => void} goLive
 * @property {(time: number) => number | null} dateAt The wall clock at a media time, in milliseconds since 1970.
 * @property {(stream: import("../api/api.js").Stream, now: number) => number | null} latency Seconds from the publisher to
 *   the screen. `now`: the server's clock, in milliseconds since 1970.
 *
 * @property {(publication: string, signal: AbortSignal) => Promise<PlaybackResult>} play Plays until the stream ends or
 *   fails; never throws. `publication`: a text that is different for each publication of the stream.
 * @property {(signal: AbortSignal) => Promise<void>} drain Resolves when all received media has been shown.
 * @property {() => void} tick Must be called a few times per second.
 * @property {() => void} detach Releases the video element.
 */

export {};
