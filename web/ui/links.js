/** Commands and addresses to copy. They use the server's public address, else that of this page, and never have a key. */

import { t } from "../strings/strings.js";
import { copyRow, make } from "./dom.js";

const KEY_PLACEHOLDER = "YOUR_KEY";
const RTMP_DEFAULT_PORT = 1935;

/** The grammar of stream names. Other names are not put into a command. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** @param {string} name */
export const isStreamName = (name) => NAME.test(name);

/**
 * @param {string | null} url URL of a recording. Links may only lead to recordings of this server.
 * @returns {url is string}
 */
export const isOwnFile = (url) => url !== null && /^(\/~[^/]*)?\/recordings\//.test(url);

/** @typedef {{rtmpPort: number | null, publishKeyRequired: boolean, publicURL?: string | null}} Server */

/** @param {Server} server @returns {URL} The address by which others reach the server. */
const addressOf = (server) => new URL(server.publicURL ?? location.origin);

/** @param {Server} server */
function rtmpServer(server) {
  const port = server.rtmpPort === RTMP_DEFAULT_PORT ? "" : `:${server.rtmpPort}`;
  return `rtmp://${addressOf(server).hostname}${port}/live`;
}

/** @param {string} name @param {Server} server @returns {HTMLElement[]} */
export function watchRows(name, server) {
  const base = `${addressOf(server).origin}/live/${name}`;
  return [
    copyRow("ffplay", `ffplay ${base}/index.m3u8`),
    copyRow("VLC", `vlc ${base}/index.m3u8`),
    copyRow(t("links.obsSource"), `${base}/index.m3u8`),
    copyRow("DASH", `${base}/manifest.mpd`),
    copyRow(t("links.lowestDelay"), `ffplay -fflags nobuffer -flags low_delay ${base}/stream.mp4`),
  ];
}

/**
 * @param {string} name
 * @param {Server} server
 * @returns {HTMLElement[]}
 */
export function publishRows(name, server) {
  if (!server.rtmpPort) return [make("p", "hint", t("links.noRTMP"))];
  const rtmp = rtmpServer(server);
  const key = server.publishKeyRequired ? `${name}?key=${KEY_PLACEHOLDER}` : name;
  const rows = [
    copyRow(t("links.obsServer"), rtmp),
    copyRow(t("links.obsKey"), key),
    copyRow(t("links.file"), `ffmpeg -re -i input.mp4 -c copy -f flv "${rtmp}/${key}"`),
    copyRow(
      t("links.pattern"),
      `ffmpeg -re -f lavfi -i testsrc2=size=1280x720:rate=30 -f lavfi -i sine=frequency=440 -c:v libx264 ` +
        `-preset veryfast -g 60 -pix_fmt yuv420p -c:a aac -f flv "${rtmp}/${key}"`,
    ),
  ];
  const hint = server.publishKeyRequired
    ? t("links.keyHint", { placeholder: KEY_PLACEHOLDER })
    : t("links.obsHint");
  return [...rows, make("p", "hint", hint)];
}
