/** Commands and addresses to take along, with this host's name and never with a key. */

import { copyRow, make } from "./dom.js";

const KEY_PLACEHOLDER = "YOUR_KEY";
const RTMP_DEFAULT_PORT = 1935;

/** The grammar of stream names; nothing else gets into a command. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** @param {string} name */
export const isStreamName = (name) => NAME.test(name);

/** @param {number} port */
const rtmpServer = (port) => `rtmp://${location.hostname}${port === RTMP_DEFAULT_PORT ? "" : `:${port}`}/live`;

/** @param {string} name @returns {HTMLElement[]} */
export function watchRows(name) {
  const base = `${location.origin}/live/${name}`;
  return [
    copyRow("ffplay", `ffplay ${base}/index.m3u8`),
    copyRow("VLC", `vlc ${base}/index.m3u8`),
    copyRow("OBS media source", `${base}/index.m3u8`),
    copyRow("DASH", `${base}/manifest.mpd`),
    copyRow("MP4, least delay", `ffplay -fflags nobuffer -flags low_delay ${base}/stream.mp4`),
  ];
}

/**
 * @param {string} name
 * @param {{rtmpPort: number | null, publishKeyRequired: boolean}} server
 * @returns {HTMLElement[]}
 */
export function publishRows(name, server) {
  if (!server.rtmpPort) return [make("p", "hint", "This server accepts no RTMP.")];
  const rtmp = rtmpServer(server.rtmpPort);
  const key = server.publishKeyRequired ? `${name}?key=${KEY_PLACEHOLDER}` : name;
  const rows = [
    copyRow("OBS server", rtmp),
    copyRow("OBS stream key", key),
    copyRow("ffmpeg, a file", `ffmpeg -re -i input.mp4 -c copy -f flv "${rtmp}/${key}"`),
    copyRow(
      "ffmpeg, a test picture",
      `ffmpeg -re -f lavfi -i testsrc2=size=1280x720:rate=30 -f lavfi -i sine=frequency=440 -c:v libx264 ` +
        `-preset veryfast -g 60 -pix_fmt yuv420p -c:a aac -f flv "${rtmp}/${key}"`,
    ),
  ];
  const hint = server.publishKeyRequired
    ? `Put your publish key in place of ${KEY_PLACEHOLDER}. In OBS, set a key frame interval of 2 s.`
    : "In OBS: Settings, Stream, Service “Custom”. Set a key frame interval of 2 s for the shortest delay.";
  return [...rows, make("p", "hint", hint)];
}
