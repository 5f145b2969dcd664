#include "include/web.h"

static const unsigned char lost_html[] = {
#embed "../../../web/404.html"
};

static const unsigned char adaptation_js[] = {
#embed "../../../web/adaptation.js"
};

static const unsigned char admin_js[] = {
#embed "../../../web/admin.js"
};

static const unsigned char admindialog_js[] = {
#embed "../../../web/admindialog.js"
};

static const unsigned char api_js[] = {
#embed "../../../web/api.js"
};

static const unsigned char boxes_js[] = {
#embed "../../../web/boxes.js"
};

static const unsigned char captions_js[] = {
#embed "../../../web/captions.js"
};

static const unsigned char clip_js[] = {
#embed "../../../web/clip.js"
};

static const unsigned char codecs_js[] = {
#embed "../../../web/codecs.js"
};

static const unsigned char controls_js[] = {
#embed "../../../web/controls.js"
};

static const unsigned char details_js[] = {
#embed "../../../web/details.js"
};

static const unsigned char devicemenu_js[] = {
#embed "../../../web/devicemenu.js"
};

static const unsigned char dom_js[] = {
#embed "../../../web/dom.js"
};

static const unsigned char edge_js[] = {
#embed "../../../web/edge.js"
};

static const unsigned char ending_js[] = {
#embed "../../../web/ending.js"
};

static const unsigned char favicon_svg[] = {
#embed "../../../web/favicon.svg"
};

static const unsigned char feeder_js[] = {
#embed "../../../web/feeder.js"
};

static const unsigned char format_js[] = {
#embed "../../../web/format.js"
};

static const unsigned char gallery_css[] = {
#embed "../../../web/gallery.css"
};

static const unsigned char gallery_js[] = {
#embed "../../../web/gallery.js"
};

static const unsigned char gallerycard_js[] = {
#embed "../../../web/gallerycard.js"
};

static const unsigned char gaps_js[] = {
#embed "../../../web/gaps.js"
};

static const unsigned char icons_svg[] = {
#embed "../../../web/icons.svg"
};

static const unsigned char index_css[] = {
#embed "../../../web/index.css"
};

static const unsigned char index_html[] = {
#embed "../../../web/index.html"
};

static const unsigned char index_js[] = {
#embed "../../../web/index.js"
};

static const unsigned char keys_js[] = {
#embed "../../../web/keys.js"
};

static const unsigned char lastrecording_js[] = {
#embed "../../../web/lastrecording.js"
};

static const unsigned char links_js[] = {
#embed "../../../web/links.js"
};

static const unsigned char lost_js[] = {
#embed "../../../web/lost.js"
};

static const unsigned char mse_js[] = {
#embed "../../../web/mse.js"
};

static const unsigned char native_js[] = {
#embed "../../../web/native.js"
};

static const unsigned char player_css[] = {
#embed "../../../web/player.css"
};

static const unsigned char playlist_js[] = {
#embed "../../../web/playlist.js"
};

static const unsigned char progressive_js[] = {
#embed "../../../web/progressive.js"
};

static const unsigned char quality_js[] = {
#embed "../../../web/quality.js"
};

static const unsigned char recordedprogramme_js[] = {
#embed "../../../web/recordedprogramme.js"
};
static const unsigned char runningprogramme_js[] = {
#embed "../../../web/runningprogramme.js"
};

static const unsigned char recordingbuttons_js[] = {
#embed "../../../web/recordingbuttons.js"
};

static const unsigned char recordingnow_js[] = {
#embed "../../../web/recordingnow.js"
};

static const unsigned char recordingplayer_js[] = {
#embed "../../../web/recordingplayer.js"
};

static const unsigned char recordings_html[] = {
#embed "../../../web/recordings.html"
};

static const unsigned char recordings_js[] = {
#embed "../../../web/recordings.js"
};

static const unsigned char recordpanel_js[] = {
#embed "../../../web/recordpanel.js"
};

static const unsigned char rendition_js[] = {
#embed "../../../web/rendition.js"
};

static const unsigned char seekbar_js[] = {
#embed "../../../web/seekbar.js"
};

static const unsigned char session_js[] = {
#embed "../../../web/session.js"
};

static const unsigned char sink_js[] = {
#embed "../../../web/sink.js"
};

static const unsigned char sourcelist_js[] = {
#embed "../../../web/sourcelist.js"
};

static const unsigned char sourcepanel_js[] = {
#embed "../../../web/sourcepanel.js"
};

static const unsigned char sourcewords_js[] = {
#embed "../../../web/sourcewords.js"
};

static const unsigned char streams_js[] = {
#embed "../../../web/streams.js"
};

static const unsigned char style_css[] = {
#embed "../../../web/style.css"
};

static const unsigned char sure_js[] = {
#embed "../../../web/sure.js"
};

static const unsigned char theatre_css[] = {
#embed "../../../web/theatre.css"
};

static const unsigned char theatre_js[] = {
#embed "../../../web/theatre.js"
};

static const unsigned char throughput_js[] = {
#embed "../../../web/throughput.js"
};

static const unsigned char timeline_js[] = {
#embed "../../../web/timeline.js"
};

static const unsigned char watch_css[] = {
#embed "../../../web/watch.css"
};

static const unsigned char watch_html[] = {
#embed "../../../web/watch.html"
};

static const unsigned char watch_js[] = {
#embed "../../../web/watch.js"
};

static const unsigned char window_js[] = {
#embed "../../../web/window.js"
};

const weir_web_file weir_web_files[] = {
    {"404.html", lost_html, sizeof lost_html},
    {"adaptation.js", adaptation_js, sizeof adaptation_js},
    {"admin.js", admin_js, sizeof admin_js},
    {"admindialog.js", admindialog_js, sizeof admindialog_js},
    {"api.js", api_js, sizeof api_js},
    {"boxes.js", boxes_js, sizeof boxes_js},
    {"captions.js", captions_js, sizeof captions_js},
    {"clip.js", clip_js, sizeof clip_js},
    {"codecs.js", codecs_js, sizeof codecs_js},
    {"controls.js", controls_js, sizeof controls_js},
    {"details.js", details_js, sizeof details_js},
    {"devicemenu.js", devicemenu_js, sizeof devicemenu_js},
    {"dom.js", dom_js, sizeof dom_js},
    {"edge.js", edge_js, sizeof edge_js},
    {"ending.js", ending_js, sizeof ending_js},
    {"favicon.svg", favicon_svg, sizeof favicon_svg},
    {"feeder.js", feeder_js, sizeof feeder_js},
    {"format.js", format_js, sizeof format_js},
    {"gallery.css", gallery_css, sizeof gallery_css},
    {"gallery.js", gallery_js, sizeof gallery_js},
    {"gallerycard.js", gallerycard_js, sizeof gallerycard_js},
    {"gaps.js", gaps_js, sizeof gaps_js},
    {"icons.svg", icons_svg, sizeof icons_svg},
    {"index.css", index_css, sizeof index_css},
    {"index.html", index_html, sizeof index_html},
    {"index.js", index_js, sizeof index_js},
    {"keys.js", keys_js, sizeof keys_js},
    {"lastrecording.js", lastrecording_js, sizeof lastrecording_js},
    {"links.js", links_js, sizeof links_js},
    {"lost.js", lost_js, sizeof lost_js},
    {"mse.js", mse_js, sizeof mse_js},
    {"native.js", native_js, sizeof native_js},
    {"player.css", player_css, sizeof player_css},
    {"playlist.js", playlist_js, sizeof playlist_js},
    {"progressive.js", progressive_js, sizeof progressive_js},
    {"quality.js", quality_js, sizeof quality_js},
    {"recordedprogramme.js", recordedprogramme_js, sizeof recordedprogramme_js},
    {"runningprogramme.js", runningprogramme_js, sizeof runningprogramme_js},
    {"recordingbuttons.js", recordingbuttons_js, sizeof recordingbuttons_js},
    {"recordingnow.js", recordingnow_js, sizeof recordingnow_js},
    {"recordingplayer.js", recordingplayer_js, sizeof recordingplayer_js},
    {"recordings.html", recordings_html, sizeof recordings_html},
    {"recordings.js", recordings_js, sizeof recordings_js},
    {"recordpanel.js", recordpanel_js, sizeof recordpanel_js},
    {"rendition.js", rendition_js, sizeof rendition_js},
    {"seekbar.js", seekbar_js, sizeof seekbar_js},
    {"session.js", session_js, sizeof session_js},
    {"sink.js", sink_js, sizeof sink_js},
    {"sourcelist.js", sourcelist_js, sizeof sourcelist_js},
    {"sourcepanel.js", sourcepanel_js, sizeof sourcepanel_js},
    {"sourcewords.js", sourcewords_js, sizeof sourcewords_js},
    {"streams.js", streams_js, sizeof streams_js},
    {"style.css", style_css, sizeof style_css},
    {"sure.js", sure_js, sizeof sure_js},
    {"theatre.css", theatre_css, sizeof theatre_css},
    {"theatre.js", theatre_js, sizeof theatre_js},
    {"throughput.js", throughput_js, sizeof throughput_js},
    {"timeline.js", timeline_js, sizeof timeline_js},
    {"watch.css", watch_css, sizeof watch_css},
    {"watch.html", watch_html, sizeof watch_html},
    {"watch.js", watch_js, sizeof watch_js},
    {"window.js", window_js, sizeof window_js},
};

const size_t weir_web_file_count = sizeof weir_web_files / sizeof weir_web_files[0];
