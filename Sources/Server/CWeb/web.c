// Made by .ci/embed-pages.
#include "include/web.h"

static const unsigned char file1[] = {
#embed "../../../web/admin/admin-dialog.js"
};
static const unsigned char file2[] = {
#embed "../../../web/admin/device-menu.js"
};
static const unsigned char file3[] = {
#embed "../../../web/admin/source-film.js"
};
static const unsigned char file4[] = {
#embed "../../../web/admin/source-list.js"
};
static const unsigned char file5[] = {
#embed "../../../web/admin/source-names.js"
};
static const unsigned char file6[] = {
#embed "../../../web/admin/source-panel.js"
};
static const unsigned char file7[] = {
#embed "../../../web/admin/tools.js"
};
static const unsigned char file8[] = {
#embed "../../../web/api/admin.js"
};
static const unsigned char file9[] = {
#embed "../../../web/api/api.js"
};
static const unsigned char file10[] = {
#embed "../../../web/engine/audio-choice.js"
};
static const unsigned char file11[] = {
#embed "../../../web/engine/caption-track.js"
};
static const unsigned char file12[] = {
#embed "../../../web/engine/engine.js"
};
static const unsigned char file13[] = {
#embed "../../../web/engine/growing-recording.js"
};
static const unsigned char file14[] = {
#embed "../../../web/engine/live-edge.js"
};
static const unsigned char file15[] = {
#embed "../../../web/engine/mse-engine.js"
};
static const unsigned char file16[] = {
#embed "../../../web/engine/native-engine.js"
};
static const unsigned char file17[] = {
#embed "../../../web/engine/progressive-source.js"
};
static const unsigned char file18[] = {
#embed "../../../web/engine/recording-playback.js"
};
static const unsigned char file19[] = {
#embed "../../../web/engine/segment-loader.js"
};
static const unsigned char file20[] = {
#embed "../../../web/engine/session.js"
};
static const unsigned char file21[] = {
#embed "../../../web/engine/source-buffers.js"
};
static const unsigned char file22[] = {
#embed "../../../web/engine/webrtc-engine.js"
};
static const unsigned char file23[] = {
#embed "../../../web/media/adaptation.js"
};
static const unsigned char file24[] = {
#embed "../../../web/media/audio-level.js"
};
static const unsigned char file25[] = {
#embed "../../../web/media/boxes.js"
};
static const unsigned char file26[] = {
#embed "../../../web/media/caption-changes.js"
};
static const unsigned char file27[] = {
#embed "../../../web/media/caption-data.js"
};
static const unsigned char file28[] = {
#embed "../../../web/media/caption-decoder.js"
};
static const unsigned char file29[] = {
#embed "../../../web/media/codecs.js"
};
static const unsigned char file30[] = {
#embed "../../../web/media/copy-parts.js"
};
static const unsigned char file31[] = {
#embed "../../../web/media/digital-caption-decoder.js"
};
static const unsigned char file32[] = {
#embed "../../../web/media/early-requests.js"
};
static const unsigned char file33[] = {
#embed "../../../web/media/fetching.js"
};
static const unsigned char file34[] = {
#embed "../../../web/media/ice-servers.js"
};
static const unsigned char file35[] = {
#embed "../../../web/media/live-window.js"
};
static const unsigned char file36[] = {
#embed "../../../web/media/playback-result.js"
};
static const unsigned char file37[] = {
#embed "../../../web/media/playlist.js"
};
static const unsigned char file38[] = {
#embed "../../../web/media/publish-settings.js"
};
static const unsigned char file39[] = {
#embed "../../../web/media/qr-code.js"
};
static const unsigned char file40[] = {
#embed "../../../web/media/reconnect-plan.js"
};
static const unsigned char file41[] = {
#embed "../../../web/media/rendition.js"
};
static const unsigned char file42[] = {
#embed "../../../web/media/root.js"
};
static const unsigned char file43[] = {
#embed "../../../web/media/sending-figures.js"
};
static const unsigned char file44[] = {
#embed "../../../web/media/session-description.js"
};
static const unsigned char file45[] = {
#embed "../../../web/media/session-ending.js"
};
static const unsigned char file46[] = {
#embed "../../../web/media/throughput.js"
};
static const unsigned char file47[] = {
#embed "../../../web/media/timeline.js"
};
static const unsigned char file48[] = {
#embed "../../../web/pages/embed.css"
};
static const unsigned char file49[] = {
#embed "../../../web/pages/embed.html"
};
static const unsigned char file50[] = {
#embed "../../../web/pages/embed.js"
};
static const unsigned char file51[] = {
#embed "../../../web/pages/index.css"
};
static const unsigned char file52[] = {
#embed "../../../web/pages/index.html"
};
static const unsigned char file53[] = {
#embed "../../../web/pages/index.js"
};
static const unsigned char file54[] = {
#embed "../../../web/pages/live-pictures.js"
};
static const unsigned char file55[] = {
#embed "../../../web/pages/no-access.html"
};
static const unsigned char file56[] = {
#embed "../../../web/pages/no-access.js"
};
static const unsigned char file57[] = {
#embed "../../../web/pages/not-found.html"
};
static const unsigned char file58[] = {
#embed "../../../web/pages/not-found.js"
};
static const unsigned char file59[] = {
#embed "../../../web/pages/publish.css"
};
static const unsigned char file60[] = {
#embed "../../../web/pages/publish.html"
};
static const unsigned char file61[] = {
#embed "../../../web/pages/publish.js"
};
static const unsigned char file62[] = {
#embed "../../../web/pages/recordings.css"
};
static const unsigned char file63[] = {
#embed "../../../web/pages/recordings.html"
};
static const unsigned char file64[] = {
#embed "../../../web/pages/recordings.js"
};
static const unsigned char file65[] = {
#embed "../../../web/pages/stream-card.js"
};
static const unsigned char file66[] = {
#embed "../../../web/pages/stream-list.js"
};
static const unsigned char file67[] = {
#embed "../../../web/pages/watch-panels.js"
};
static const unsigned char file68[] = {
#embed "../../../web/pages/watch.css"
};
static const unsigned char file69[] = {
#embed "../../../web/pages/watch.html"
};
static const unsigned char file70[] = {
#embed "../../../web/pages/watch.js"
};
static const unsigned char file71[] = {
#embed "../../../web/player/address.js"
};
static const unsigned char file72[] = {
#embed "../../../web/player/assets.js"
};
static const unsigned char file73[] = {
#embed "../../../web/player/markup.js"
};
static const unsigned char file74[] = {
#embed "../../../web/player/weir-player.css"
};
static const unsigned char file75[] = {
#embed "../../../web/player/weir-player.js"
};
static const unsigned char file76[] = {
#embed "../../../web/publish/audio-source.js"
};
static const unsigned char file77[] = {
#embed "../../../web/publish/copy-offer.js"
};
static const unsigned char file78[] = {
#embed "../../../web/publish/devices.js"
};
static const unsigned char file79[] = {
#embed "../../../web/publish/key-field.js"
};
static const unsigned char file80[] = {
#embed "../../../web/publish/level-meter.js"
};
static const unsigned char file81[] = {
#embed "../../../web/publish/live-bar.js"
};
static const unsigned char file82[] = {
#embed "../../../web/publish/local-copy.js"
};
static const unsigned char file83[] = {
#embed "../../../web/publish/problems.js"
};
static const unsigned char file84[] = {
#embed "../../../web/publish/recording-switch.js"
};
static const unsigned char file85[] = {
#embed "../../../web/publish/sender.js"
};
static const unsigned char file86[] = {
#embed "../../../web/publish/settings-panel.js"
};
static const unsigned char file87[] = {
#embed "../../../web/publish/slate.js"
};
static const unsigned char file88[] = {
#embed "../../../web/publish/studio.js"
};
static const unsigned char file89[] = {
#embed "../../../web/publish/video-source.js"
};
static const unsigned char file90[] = {
#embed "../../../web/publish/whip.js"
};
static const unsigned char file91[] = {
#embed "../../../web/recordings/annotation-editor.js"
};
static const unsigned char file92[] = {
#embed "../../../web/recordings/clip-editor.js"
};
static const unsigned char file93[] = {
#embed "../../../web/recordings/gallery-card.js"
};
static const unsigned char file94[] = {
#embed "../../../web/recordings/gaps.js"
};
static const unsigned char file95[] = {
#embed "../../../web/recordings/last-recording.js"
};
static const unsigned char file96[] = {
#embed "../../../web/recordings/live-clip.js"
};
static const unsigned char file97[] = {
#embed "../../../web/recordings/play-recording.js"
};
static const unsigned char file98[] = {
#embed "../../../web/recordings/recording-buttons.js"
};
static const unsigned char file99[] = {
#embed "../../../web/recordings/recording-card.js"
};
static const unsigned char file100[] = {
#embed "../../../web/recordings/recording-dialog.css"
};
static const unsigned char file101[] = {
#embed "../../../web/recordings/recording-dialog.js"
};
static const unsigned char file102[] = {
#embed "../../../web/recordings/recording-link.js"
};
static const unsigned char file103[] = {
#embed "../../../web/recordings/recording-panel.js"
};
static const unsigned char file104[] = {
#embed "../../../web/recordings/recording-player.js"
};
static const unsigned char file105[] = {
#embed "../../../web/recordings/running-recordings.js"
};
static const unsigned char file106[] = {
#embed "../../../web/recordings/seek-pictures.js"
};
static const unsigned char file107[] = {
#embed "../../../web/recordings/selection.js"
};
static const unsigned char file108[] = {
#embed "../../../web/recordings/share-recording.js"
};
static const unsigned char file109[] = {
#embed "../../../web/strings/de.json"
};
static const unsigned char file110[] = {
#embed "../../../web/strings/en.json"
};
static const unsigned char file111[] = {
#embed "../../../web/strings/strings.js"
};
static const unsigned char file112[] = {
#embed "../../../web/ui/audio-menu.js"
};
static const unsigned char file113[] = {
#embed "../../../web/ui/captions-menu.js"
};
static const unsigned char file114[] = {
#embed "../../../web/ui/confirm-button.js"
};
static const unsigned char file115[] = {
#embed "../../../web/ui/controls.js"
};
static const unsigned char file116[] = {
#embed "../../../web/ui/details-panel.js"
};
static const unsigned char file117[] = {
#embed "../../../web/ui/dom.js"
};
static const unsigned char file118[] = {
#embed "../../../web/ui/favicon.svg"
};
static const unsigned char file119[] = {
#embed "../../../web/ui/format.js"
};
static const unsigned char file120[] = {
#embed "../../../web/ui/icons.svg"
};
static const unsigned char file121[] = {
#embed "../../../web/ui/keys.js"
};
static const unsigned char file122[] = {
#embed "../../../web/ui/links.js"
};
static const unsigned char file123[] = {
#embed "../../../web/ui/page-strings.js"
};
static const unsigned char file124[] = {
#embed "../../../web/ui/player.css"
};
static const unsigned char file125[] = {
#embed "../../../web/ui/qr-image.js"
};
static const unsigned char file126[] = {
#embed "../../../web/ui/quality-menu.js"
};
static const unsigned char file127[] = {
#embed "../../../web/ui/seek-bar.js"
};
static const unsigned char file128[] = {
#embed "../../../web/ui/stage.css"
};
static const unsigned char file129[] = {
#embed "../../../web/ui/stage.js"
};
static const unsigned char file130[] = {
#embed "../../../web/ui/style.css"
};
static const unsigned char file131[] = {
#embed "../../../web/ui/wake-lock.js"
};
static const unsigned char file132[] = {
#embed "../../../web/weir-player.js"
};

const weir_web_file weir_web_files[] = {
    {"admin/admin-dialog.js", file1, sizeof file1},
    {"admin/device-menu.js", file2, sizeof file2},
    {"admin/source-film.js", file3, sizeof file3},
    {"admin/source-list.js", file4, sizeof file4},
    {"admin/source-names.js", file5, sizeof file5},
    {"admin/source-panel.js", file6, sizeof file6},
    {"admin/tools.js", file7, sizeof file7},
    {"api/admin.js", file8, sizeof file8},
    {"api/api.js", file9, sizeof file9},
    {"engine/audio-choice.js", file10, sizeof file10},
    {"engine/caption-track.js", file11, sizeof file11},
    {"engine/engine.js", file12, sizeof file12},
    {"engine/growing-recording.js", file13, sizeof file13},
    {"engine/live-edge.js", file14, sizeof file14},
    {"engine/mse-engine.js", file15, sizeof file15},
    {"engine/native-engine.js", file16, sizeof file16},
    {"engine/progressive-source.js", file17, sizeof file17},
    {"engine/recording-playback.js", file18, sizeof file18},
    {"engine/segment-loader.js", file19, sizeof file19},
    {"engine/session.js", file20, sizeof file20},
    {"engine/source-buffers.js", file21, sizeof file21},
    {"engine/webrtc-engine.js", file22, sizeof file22},
    {"media/adaptation.js", file23, sizeof file23},
    {"media/audio-level.js", file24, sizeof file24},
    {"media/boxes.js", file25, sizeof file25},
    {"media/caption-changes.js", file26, sizeof file26},
    {"media/caption-data.js", file27, sizeof file27},
    {"media/caption-decoder.js", file28, sizeof file28},
    {"media/codecs.js", file29, sizeof file29},
    {"media/copy-parts.js", file30, sizeof file30},
    {"media/digital-caption-decoder.js", file31, sizeof file31},
    {"media/early-requests.js", file32, sizeof file32},
    {"media/fetching.js", file33, sizeof file33},
    {"media/ice-servers.js", file34, sizeof file34},
    {"media/live-window.js", file35, sizeof file35},
    {"media/playback-result.js", file36, sizeof file36},
    {"media/playlist.js", file37, sizeof file37},
    {"media/publish-settings.js", file38, sizeof file38},
    {"media/qr-code.js", file39, sizeof file39},
    {"media/reconnect-plan.js", file40, sizeof file40},
    {"media/rendition.js", file41, sizeof file41},
    {"media/root.js", file42, sizeof file42},
    {"media/sending-figures.js", file43, sizeof file43},
    {"media/session-description.js", file44, sizeof file44},
    {"media/session-ending.js", file45, sizeof file45},
    {"media/throughput.js", file46, sizeof file46},
    {"media/timeline.js", file47, sizeof file47},
    {"pages/embed.css", file48, sizeof file48},
    {"pages/embed.html", file49, sizeof file49},
    {"pages/embed.js", file50, sizeof file50},
    {"pages/index.css", file51, sizeof file51},
    {"pages/index.html", file52, sizeof file52},
    {"pages/index.js", file53, sizeof file53},
    {"pages/live-pictures.js", file54, sizeof file54},
    {"pages/no-access.html", file55, sizeof file55},
    {"pages/no-access.js", file56, sizeof file56},
    {"pages/not-found.html", file57, sizeof file57},
    {"pages/not-found.js", file58, sizeof file58},
    {"pages/publish.css", file59, sizeof file59},
    {"pages/publish.html", file60, sizeof file60},
    {"pages/publish.js", file61, sizeof file61},
    {"pages/recordings.css", file62, sizeof file62},
    {"pages/recordings.html", file63, sizeof file63},
    {"pages/recordings.js", file64, sizeof file64},
    {"pages/stream-card.js", file65, sizeof file65},
    {"pages/stream-list.js", file66, sizeof file66},
    {"pages/watch-panels.js", file67, sizeof file67},
    {"pages/watch.css", file68, sizeof file68},
    {"pages/watch.html", file69, sizeof file69},
    {"pages/watch.js", file70, sizeof file70},
    {"player/address.js", file71, sizeof file71},
    {"player/assets.js", file72, sizeof file72},
    {"player/markup.js", file73, sizeof file73},
    {"player/weir-player.css", file74, sizeof file74},
    {"player/weir-player.js", file75, sizeof file75},
    {"publish/audio-source.js", file76, sizeof file76},
    {"publish/copy-offer.js", file77, sizeof file77},
    {"publish/devices.js", file78, sizeof file78},
    {"publish/key-field.js", file79, sizeof file79},
    {"publish/level-meter.js", file80, sizeof file80},
    {"publish/live-bar.js", file81, sizeof file81},
    {"publish/local-copy.js", file82, sizeof file82},
    {"publish/problems.js", file83, sizeof file83},
    {"publish/recording-switch.js", file84, sizeof file84},
    {"publish/sender.js", file85, sizeof file85},
    {"publish/settings-panel.js", file86, sizeof file86},
    {"publish/slate.js", file87, sizeof file87},
    {"publish/studio.js", file88, sizeof file88},
    {"publish/video-source.js", file89, sizeof file89},
    {"publish/whip.js", file90, sizeof file90},
    {"recordings/annotation-editor.js", file91, sizeof file91},
    {"recordings/clip-editor.js", file92, sizeof file92},
    {"recordings/gallery-card.js", file93, sizeof file93},
    {"recordings/gaps.js", file94, sizeof file94},
    {"recordings/last-recording.js", file95, sizeof file95},
    {"recordings/live-clip.js", file96, sizeof file96},
    {"recordings/play-recording.js", file97, sizeof file97},
    {"recordings/recording-buttons.js", file98, sizeof file98},
    {"recordings/recording-card.js", file99, sizeof file99},
    {"recordings/recording-dialog.css", file100, sizeof file100},
    {"recordings/recording-dialog.js", file101, sizeof file101},
    {"recordings/recording-link.js", file102, sizeof file102},
    {"recordings/recording-panel.js", file103, sizeof file103},
    {"recordings/recording-player.js", file104, sizeof file104},
    {"recordings/running-recordings.js", file105, sizeof file105},
    {"recordings/seek-pictures.js", file106, sizeof file106},
    {"recordings/selection.js", file107, sizeof file107},
    {"recordings/share-recording.js", file108, sizeof file108},
    {"strings/de.json", file109, sizeof file109},
    {"strings/en.json", file110, sizeof file110},
    {"strings/strings.js", file111, sizeof file111},
    {"ui/audio-menu.js", file112, sizeof file112},
    {"ui/captions-menu.js", file113, sizeof file113},
    {"ui/confirm-button.js", file114, sizeof file114},
    {"ui/controls.js", file115, sizeof file115},
    {"ui/details-panel.js", file116, sizeof file116},
    {"ui/dom.js", file117, sizeof file117},
    {"ui/favicon.svg", file118, sizeof file118},
    {"ui/format.js", file119, sizeof file119},
    {"ui/icons.svg", file120, sizeof file120},
    {"ui/keys.js", file121, sizeof file121},
    {"ui/links.js", file122, sizeof file122},
    {"ui/page-strings.js", file123, sizeof file123},
    {"ui/player.css", file124, sizeof file124},
    {"ui/qr-image.js", file125, sizeof file125},
    {"ui/quality-menu.js", file126, sizeof file126},
    {"ui/seek-bar.js", file127, sizeof file127},
    {"ui/stage.css", file128, sizeof file128},
    {"ui/stage.js", file129, sizeof file129},
    {"ui/style.css", file130, sizeof file130},
    {"ui/wake-lock.js", file131, sizeof file131},
    {"weir-player.js", file132, sizeof file132},
};

const size_t weir_web_file_count = sizeof weir_web_files / sizeof weir_web_files[0];
