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
#embed "../../../web/api/admin.js"
};
static const unsigned char file8[] = {
#embed "../../../web/api/api.js"
};
static const unsigned char file9[] = {
#embed "../../../web/engine/audio-choice.js"
};
static const unsigned char file10[] = {
#embed "../../../web/engine/caption-track.js"
};
static const unsigned char file11[] = {
#embed "../../../web/engine/engine.js"
};
static const unsigned char file12[] = {
#embed "../../../web/engine/growing-recording.js"
};
static const unsigned char file13[] = {
#embed "../../../web/engine/live-edge.js"
};
static const unsigned char file14[] = {
#embed "../../../web/engine/mse-engine.js"
};
static const unsigned char file15[] = {
#embed "../../../web/engine/native-engine.js"
};
static const unsigned char file16[] = {
#embed "../../../web/engine/progressive-source.js"
};
static const unsigned char file17[] = {
#embed "../../../web/engine/recording-playback.js"
};
static const unsigned char file18[] = {
#embed "../../../web/engine/segment-loader.js"
};
static const unsigned char file19[] = {
#embed "../../../web/engine/session.js"
};
static const unsigned char file20[] = {
#embed "../../../web/engine/source-buffers.js"
};
static const unsigned char file21[] = {
#embed "../../../web/media/adaptation.js"
};
static const unsigned char file22[] = {
#embed "../../../web/media/boxes.js"
};
static const unsigned char file23[] = {
#embed "../../../web/media/caption-data.js"
};
static const unsigned char file24[] = {
#embed "../../../web/media/caption-decoder.js"
};
static const unsigned char file25[] = {
#embed "../../../web/media/codecs.js"
};
static const unsigned char file26[] = {
#embed "../../../web/media/early-requests.js"
};
static const unsigned char file27[] = {
#embed "../../../web/media/fetching.js"
};
static const unsigned char file28[] = {
#embed "../../../web/media/live-window.js"
};
static const unsigned char file29[] = {
#embed "../../../web/media/playback-result.js"
};
static const unsigned char file30[] = {
#embed "../../../web/media/playlist.js"
};
static const unsigned char file31[] = {
#embed "../../../web/media/qr-code.js"
};
static const unsigned char file32[] = {
#embed "../../../web/media/rendition.js"
};
static const unsigned char file33[] = {
#embed "../../../web/media/throughput.js"
};
static const unsigned char file34[] = {
#embed "../../../web/media/timeline.js"
};
static const unsigned char file35[] = {
#embed "../../../web/pages/embed.css"
};
static const unsigned char file36[] = {
#embed "../../../web/pages/embed.html"
};
static const unsigned char file37[] = {
#embed "../../../web/pages/embed.js"
};
static const unsigned char file38[] = {
#embed "../../../web/pages/index.css"
};
static const unsigned char file39[] = {
#embed "../../../web/pages/index.html"
};
static const unsigned char file40[] = {
#embed "../../../web/pages/index.js"
};
static const unsigned char file41[] = {
#embed "../../../web/pages/not-found.html"
};
static const unsigned char file42[] = {
#embed "../../../web/pages/not-found.js"
};
static const unsigned char file43[] = {
#embed "../../../web/pages/recordings.css"
};
static const unsigned char file44[] = {
#embed "../../../web/pages/recordings.html"
};
static const unsigned char file45[] = {
#embed "../../../web/pages/recordings.js"
};
static const unsigned char file46[] = {
#embed "../../../web/pages/stream-card.js"
};
static const unsigned char file47[] = {
#embed "../../../web/pages/watch-panels.js"
};
static const unsigned char file48[] = {
#embed "../../../web/pages/watch.css"
};
static const unsigned char file49[] = {
#embed "../../../web/pages/watch.html"
};
static const unsigned char file50[] = {
#embed "../../../web/pages/watch.js"
};
static const unsigned char file51[] = {
#embed "../../../web/player/address.js"
};
static const unsigned char file52[] = {
#embed "../../../web/player/assets.js"
};
static const unsigned char file53[] = {
#embed "../../../web/player/markup.js"
};
static const unsigned char file54[] = {
#embed "../../../web/player/weir-player.css"
};
static const unsigned char file55[] = {
#embed "../../../web/player/weir-player.js"
};
static const unsigned char file56[] = {
#embed "../../../web/recordings/clip-editor.js"
};
static const unsigned char file57[] = {
#embed "../../../web/recordings/gallery-card.js"
};
static const unsigned char file58[] = {
#embed "../../../web/recordings/gaps.js"
};
static const unsigned char file59[] = {
#embed "../../../web/recordings/last-recording.js"
};
static const unsigned char file60[] = {
#embed "../../../web/recordings/play-recording.js"
};
static const unsigned char file61[] = {
#embed "../../../web/recordings/recording-buttons.js"
};
static const unsigned char file62[] = {
#embed "../../../web/recordings/recording-card.js"
};
static const unsigned char file63[] = {
#embed "../../../web/recordings/recording-dialog.css"
};
static const unsigned char file64[] = {
#embed "../../../web/recordings/recording-dialog.js"
};
static const unsigned char file65[] = {
#embed "../../../web/recordings/recording-panel.js"
};
static const unsigned char file66[] = {
#embed "../../../web/recordings/recording-player.js"
};
static const unsigned char file67[] = {
#embed "../../../web/recordings/running-recordings.js"
};
static const unsigned char file68[] = {
#embed "../../../web/ui/audio-menu.js"
};
static const unsigned char file69[] = {
#embed "../../../web/ui/captions-menu.js"
};
static const unsigned char file70[] = {
#embed "../../../web/ui/confirm-button.js"
};
static const unsigned char file71[] = {
#embed "../../../web/ui/controls.js"
};
static const unsigned char file72[] = {
#embed "../../../web/ui/details-panel.js"
};
static const unsigned char file73[] = {
#embed "../../../web/ui/dom.js"
};
static const unsigned char file74[] = {
#embed "../../../web/ui/favicon.svg"
};
static const unsigned char file75[] = {
#embed "../../../web/ui/format.js"
};
static const unsigned char file76[] = {
#embed "../../../web/ui/icons.svg"
};
static const unsigned char file77[] = {
#embed "../../../web/ui/keys.js"
};
static const unsigned char file78[] = {
#embed "../../../web/ui/links.js"
};
static const unsigned char file79[] = {
#embed "../../../web/ui/player.css"
};
static const unsigned char file80[] = {
#embed "../../../web/ui/qr-image.js"
};
static const unsigned char file81[] = {
#embed "../../../web/ui/quality-menu.js"
};
static const unsigned char file82[] = {
#embed "../../../web/ui/seek-bar.js"
};
static const unsigned char file83[] = {
#embed "../../../web/ui/stage.css"
};
static const unsigned char file84[] = {
#embed "../../../web/ui/stage.js"
};
static const unsigned char file85[] = {
#embed "../../../web/ui/style.css"
};
static const unsigned char file86[] = {
#embed "../../../web/ui/wake-lock.js"
};
static const unsigned char file87[] = {
#embed "../../../web/weir-player.js"
};

const weir_web_file weir_web_files[] = {
    {"admin/admin-dialog.js", file1, sizeof file1},
    {"admin/device-menu.js", file2, sizeof file2},
    {"admin/source-film.js", file3, sizeof file3},
    {"admin/source-list.js", file4, sizeof file4},
    {"admin/source-names.js", file5, sizeof file5},
    {"admin/source-panel.js", file6, sizeof file6},
    {"api/admin.js", file7, sizeof file7},
    {"api/api.js", file8, sizeof file8},
    {"engine/audio-choice.js", file9, sizeof file9},
    {"engine/caption-track.js", file10, sizeof file10},
    {"engine/engine.js", file11, sizeof file11},
    {"engine/growing-recording.js", file12, sizeof file12},
    {"engine/live-edge.js", file13, sizeof file13},
    {"engine/mse-engine.js", file14, sizeof file14},
    {"engine/native-engine.js", file15, sizeof file15},
    {"engine/progressive-source.js", file16, sizeof file16},
    {"engine/recording-playback.js", file17, sizeof file17},
    {"engine/segment-loader.js", file18, sizeof file18},
    {"engine/session.js", file19, sizeof file19},
    {"engine/source-buffers.js", file20, sizeof file20},
    {"media/adaptation.js", file21, sizeof file21},
    {"media/boxes.js", file22, sizeof file22},
    {"media/caption-data.js", file23, sizeof file23},
    {"media/caption-decoder.js", file24, sizeof file24},
    {"media/codecs.js", file25, sizeof file25},
    {"media/early-requests.js", file26, sizeof file26},
    {"media/fetching.js", file27, sizeof file27},
    {"media/live-window.js", file28, sizeof file28},
    {"media/playback-result.js", file29, sizeof file29},
    {"media/playlist.js", file30, sizeof file30},
    {"media/qr-code.js", file31, sizeof file31},
    {"media/rendition.js", file32, sizeof file32},
    {"media/throughput.js", file33, sizeof file33},
    {"media/timeline.js", file34, sizeof file34},
    {"pages/embed.css", file35, sizeof file35},
    {"pages/embed.html", file36, sizeof file36},
    {"pages/embed.js", file37, sizeof file37},
    {"pages/index.css", file38, sizeof file38},
    {"pages/index.html", file39, sizeof file39},
    {"pages/index.js", file40, sizeof file40},
    {"pages/not-found.html", file41, sizeof file41},
    {"pages/not-found.js", file42, sizeof file42},
    {"pages/recordings.css", file43, sizeof file43},
    {"pages/recordings.html", file44, sizeof file44},
    {"pages/recordings.js", file45, sizeof file45},
    {"pages/stream-card.js", file46, sizeof file46},
    {"pages/watch-panels.js", file47, sizeof file47},
    {"pages/watch.css", file48, sizeof file48},
    {"pages/watch.html", file49, sizeof file49},
    {"pages/watch.js", file50, sizeof file50},
    {"player/address.js", file51, sizeof file51},
    {"player/assets.js", file52, sizeof file52},
    {"player/markup.js", file53, sizeof file53},
    {"player/weir-player.css", file54, sizeof file54},
    {"player/weir-player.js", file55, sizeof file55},
    {"recordings/clip-editor.js", file56, sizeof file56},
    {"recordings/gallery-card.js", file57, sizeof file57},
    {"recordings/gaps.js", file58, sizeof file58},
    {"recordings/last-recording.js", file59, sizeof file59},
    {"recordings/play-recording.js", file60, sizeof file60},
    {"recordings/recording-buttons.js", file61, sizeof file61},
    {"recordings/recording-card.js", file62, sizeof file62},
    {"recordings/recording-dialog.css", file63, sizeof file63},
    {"recordings/recording-dialog.js", file64, sizeof file64},
    {"recordings/recording-panel.js", file65, sizeof file65},
    {"recordings/recording-player.js", file66, sizeof file66},
    {"recordings/running-recordings.js", file67, sizeof file67},
    {"ui/audio-menu.js", file68, sizeof file68},
    {"ui/captions-menu.js", file69, sizeof file69},
    {"ui/confirm-button.js", file70, sizeof file70},
    {"ui/controls.js", file71, sizeof file71},
    {"ui/details-panel.js", file72, sizeof file72},
    {"ui/dom.js", file73, sizeof file73},
    {"ui/favicon.svg", file74, sizeof file74},
    {"ui/format.js", file75, sizeof file75},
    {"ui/icons.svg", file76, sizeof file76},
    {"ui/keys.js", file77, sizeof file77},
    {"ui/links.js", file78, sizeof file78},
    {"ui/player.css", file79, sizeof file79},
    {"ui/qr-image.js", file80, sizeof file80},
    {"ui/quality-menu.js", file81, sizeof file81},
    {"ui/seek-bar.js", file82, sizeof file82},
    {"ui/stage.css", file83, sizeof file83},
    {"ui/stage.js", file84, sizeof file84},
    {"ui/style.css", file85, sizeof file85},
    {"ui/wake-lock.js", file86, sizeof file86},
    {"weir-player.js", file87, sizeof file87},
};

const size_t weir_web_file_count = sizeof weir_web_files / sizeof weir_web_files[0];
