/** What plays a stream in a video element, as the session, the controls and the panels see it. */

/** @typedef {import("../media/playback-result.js").PlaybackResult} PlaybackResult */
/** @typedef {import("../media/live-window.js").Quality} Quality */

/**
 * @typedef {object} Engine
 * @property {"native" | "mse" | "hls"} name "mse": `stream.mp4` at the live edge; "hls": HLS parts there; "native": the
 *   browser's own player.
 * @property {string} source What media come by, for people.
 * @property {string[]} codecs RFC 6381 strings of what plays.
 * @property {number} stalls How often the playhead had to wait.
 * @property {number | null} bytes Of media received; null where the browser does not tell.
 *
 * @property {Quality[]} qualities Those to choose from; none where there is one alone, or the browser chooses.
 * @property {string} quality The name of the one that plays; "" for the publisher's.
 * @property {boolean} isAutomatic Whether the quality follows the connection.
 * @property {(name: string | null) => Promise<void>} chooseQuality Null: by the connection. Throws where it cannot be had.
 *
 * @property {{start: number, end: number} | null} range Seconds of media that can be sought; null while unknown.
 * @property {number} behind Seconds between the playhead and the newest media.
 * @property {number} liveTolerance Seconds behind from which on "go live" makes a difference.
 * @property {number | null} target Seconds of media kept ahead of the playhead at the edge; null where the browser decides.
 * @property {boolean} isFollowed Whether the viewer follows the live edge.
 * @property {boolean} playsFromWindow Whether something is to be played though the stream has ended.
 * @property {() => void} onPlayRequest Called when the viewer wants media and nothing is being played.
 * @property {(time: number) => void} seek Seconds of media.
 * @property {() => void} goLive
 * @property {(time: number) => number | null} dateAt The wall-clock time there, in milliseconds since 1970.
 * @property {(stream: import("../api/api.js").Stream, now: number) => number | null} latency Seconds from the publisher to
 *   the screen; `now` by the server's clock, in milliseconds since 1970.
 *
 * @property {(publication: string, signal: AbortSignal) => Promise<PlaybackResult>} play Plays until the stream ends or
 *   fails; never throws. `publication` changes with each new publication of the stream.
 * @property {(signal: AbortSignal) => Promise<void>} drain Resolves when all that was received has been shown.
 * @property {() => void} tick To be called a few times each second.
 * @property {() => void} detach Lets go of the video element.
 */

export {};
