/**
 * The element <weir-player> for pages of any server, at an address that stays: /web/weir-player.js. It names all of the element's
 * scripts, so that they load side by side. Where they are changes with each build.
 */

export { WeirPlayer } from "./player/weir-player.js";
import "./api/api.js";
import "./engine/audio-choice.js";
import "./engine/caption-track.js";
import "./engine/live-edge.js";
import "./engine/mse-engine.js";
import "./engine/native-engine.js";
import "./engine/progressive-source.js";
import "./engine/segment-loader.js";
import "./engine/session.js";
import "./engine/source-buffers.js";
import "./media/adaptation.js";
import "./media/boxes.js";
import "./media/caption-changes.js";
import "./media/caption-data.js";
import "./media/caption-decoder.js";
import "./media/codecs.js";
import "./media/digital-caption-decoder.js";
import "./media/early-requests.js";
import "./media/fetching.js";
import "./media/live-window.js";
import "./media/playback-result.js";
import "./media/playlist.js";
import "./media/rendition.js";
import "./media/root.js";
import "./media/throughput.js";
import "./media/timeline.js";
import "./player/address.js";
import "./player/assets.js";
import "./player/markup.js";
import "./strings/strings.js";
import "./ui/audio-menu.js";
import "./ui/captions-menu.js";
import "./ui/controls.js";
import "./ui/dom.js";
import "./ui/format.js";
import "./ui/keys.js";
import "./ui/links.js";
import "./ui/quality-menu.js";
import "./ui/seek-bar.js";
import "./ui/stage.js";
