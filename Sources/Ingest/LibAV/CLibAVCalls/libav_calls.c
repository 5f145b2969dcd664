// The functions of libav that weir calls, each looked up at its first call. Linked in the ordinary way, libav and the 115 libraries
// below it took 30 of the 41 ms of processor time of each start, and 1,900 pages, in servers that never decode, in each command,
// and in each worker for SRT. The compiler holds each function against its declaration in libav's own headers.

#include "libav_calls.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// Hidden, so that libav itself calls its own.
#pragma GCC visibility push(hidden)
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/avutil.h>
#include <libavutil/channel_layout.h>
#include <libavutil/dict.h>
#include <libavutil/frame.h>
#include <libavutil/hwcontext.h>
#include <libavutil/imgutils.h>
#include <libavutil/log.h>
#include <libavutil/opt.h>
#include <libavutil/samplefmt.h>
#include <libswresample/swresample.h>
#include <libswscale/swscale.h>

enum library { avutil, swresample, swscale, avcodec, avformat, libraries };

// The release of each library whose headers this is compiled with.
static const char *const names[libraries] = {
    "libavutil.so." AV_STRINGIFY(LIBAVUTIL_VERSION_MAJOR),
    "libswresample.so." AV_STRINGIFY(LIBSWRESAMPLE_VERSION_MAJOR),
    "libswscale.so." AV_STRINGIFY(LIBSWSCALE_VERSION_MAJOR),
    "libavcodec.so." AV_STRINGIFY(LIBAVCODEC_VERSION_MAJOR),
    "libavformat.so." AV_STRINGIFY(LIBAVFORMAT_VERSION_MAJOR),
};

static void *handles[libraries];
static pthread_once_t once = PTHREAD_ONCE_INIT;
// Why libav could not be loaded; empty if it could.
static char failure[512];

static void describe(const char *what) {
  const char *reason = dlerror();
  snprintf(failure, sizeof failure, "%s cannot be used: %s; install the package of that library", what, reason ? reason : "?");
}

static void load(void) {
  for (int index = 0; index < libraries; index++) {
    handles[index] = dlopen(names[index], RTLD_LAZY | RTLD_LOCAL);
    if (!handles[index]) return describe(names[index]);
  }
}

const char *weir_libav_failure(void) {
  pthread_once(&once, load);
  return *failure ? failure : NULL;
}

static void end(const char *reason) {
  fprintf(stderr, "weir: error: %s\n", reason);
  _exit(78);
}

void weir_load_libav(void) {
  const char *reason = weir_libav_failure();
  if (reason) end(reason);
}

static void *find(enum library library, const char *name) {
  weir_load_libav();
  void *function = dlsym(handles[library], name);
  if (!function) {
    describe(name);
    end(failure);
  }
  return function;
}

// Each function keeps where its own is. Two threads may both look it up, and find the same.
#define WEIR_FIND(library, name)                                                                                       \
  static _Atomic(void *) found;                                                                                        \
  void *function = atomic_load_explicit(&found, memory_order_acquire);                                                 \
  if (__builtin_expect(!function, 0)) {                                                                                \
    function = find(library, #name);                                                                                   \
    atomic_store_explicit(&found, function, memory_order_release);                                                     \
  }
#define WEIR_CALL(library, name, ...)                                                                                  \
  WEIR_FIND(library, name)                                                                                             \
  return ((__typeof__(&name))function)(__VA_ARGS__)
#define WEIR_RUN(library, name, ...)                                                                                   \
  WEIR_FIND(library, name)                                                                                             \
  ((__typeof__(&name))function)(__VA_ARGS__)

// libavutil
AVBufferRef *av_buffer_ref(const AVBufferRef *buf) { WEIR_CALL(avutil, av_buffer_ref, buf); }
void av_buffer_unref(AVBufferRef **buf) { WEIR_RUN(avutil, av_buffer_unref, buf); }
void av_channel_layout_default(
    AVChannelLayout *ch_layout, int nb_channels) {
  WEIR_RUN(avutil, av_channel_layout_default, ch_layout, nb_channels);
}
void av_dict_free(AVDictionary **m) { WEIR_RUN(avutil, av_dict_free, m); }
int av_dict_set(
    AVDictionary **pm, const char *key, const char *value, int flags) {
  WEIR_CALL(avutil, av_dict_set, pm, key, value, flags);
}
AVFrame *av_frame_alloc(void) { WEIR_CALL(avutil, av_frame_alloc); }
void av_frame_free(AVFrame **frame) { WEIR_RUN(avutil, av_frame_free, frame); }
int av_frame_get_buffer(AVFrame *frame, int align) { WEIR_CALL(avutil, av_frame_get_buffer, frame, align); }
AVFrameSideData *av_frame_get_side_data(
    const AVFrame *frame, enum AVFrameSideDataType type) {
  WEIR_CALL(avutil, av_frame_get_side_data, frame, type);
}
int av_frame_make_writable(AVFrame *frame) { WEIR_CALL(avutil, av_frame_make_writable, frame); }
AVFrameSideData *av_frame_new_side_data(
    AVFrame *frame, enum AVFrameSideDataType type, size_t size) {
  WEIR_CALL(avutil, av_frame_new_side_data, frame, type, size);
}
int av_frame_ref(AVFrame *dst, const AVFrame *src) { WEIR_CALL(avutil, av_frame_ref, dst, src); }
void av_frame_remove_side_data(
    AVFrame *frame, enum AVFrameSideDataType type) {
  WEIR_RUN(avutil, av_frame_remove_side_data, frame, type);
}
void av_frame_unref(AVFrame *frame) { WEIR_RUN(avutil, av_frame_unref, frame); }
void av_freep(void *ptr) { WEIR_RUN(avutil, av_freep, ptr); }
int av_get_bytes_per_sample(enum AVSampleFormat sample_fmt) { WEIR_CALL(avutil, av_get_bytes_per_sample, sample_fmt); }
int av_hwdevice_ctx_create(
    AVBufferRef **device_ctx, enum AVHWDeviceType type, const char *device, AVDictionary *opts, int flags) {
  WEIR_CALL(avutil, av_hwdevice_ctx_create, device_ctx, type, device, opts, flags);
}
AVBufferRef *av_hwframe_ctx_alloc(AVBufferRef *device_ctx) { WEIR_CALL(avutil, av_hwframe_ctx_alloc, device_ctx); }
int av_hwframe_ctx_init(AVBufferRef *ref) { WEIR_CALL(avutil, av_hwframe_ctx_init, ref); }
int av_hwframe_get_buffer(
    AVBufferRef *hwframe_ctx, AVFrame *frame, int flags) {
  WEIR_CALL(avutil, av_hwframe_get_buffer, hwframe_ctx, frame, flags);
}
int av_hwframe_transfer_data(
    AVFrame *dst, const AVFrame *src, int flags) {
  WEIR_CALL(avutil, av_hwframe_transfer_data, dst, src, flags);
}
int av_image_fill_black(
    uint8_t *dst_data[4], const ptrdiff_t dst_linesize[4], enum AVPixelFormat pix_fmt, enum AVColorRange range,
    int width, int height) {
  WEIR_CALL(avutil, av_image_fill_black, dst_data, dst_linesize, pix_fmt, range, width, height);
}
void av_log_set_level(int level) { WEIR_RUN(avutil, av_log_set_level, level); }
void *av_mallocz(size_t size) { WEIR_CALL(avutil, av_mallocz, size); }
int av_opt_set(
    void *obj, const char *name, const char *val, int search_flags) {
  WEIR_CALL(avutil, av_opt_set, obj, name, val, search_flags);
}
int av_opt_set_int(
    void *obj, const char *name, int64_t val, int search_flags) {
  WEIR_CALL(avutil, av_opt_set_int, obj, name, val, search_flags);
}
int64_t av_rescale_q(int64_t a, AVRational bq, AVRational cq) { WEIR_CALL(avutil, av_rescale_q, a, bq, cq); }
int av_sample_fmt_is_planar(enum AVSampleFormat sample_fmt) { WEIR_CALL(avutil, av_sample_fmt_is_planar, sample_fmt); }
int av_samples_alloc_array_and_samples(
    uint8_t ***audio_data, int *linesize, int nb_channels, int nb_samples, enum AVSampleFormat sample_fmt, int align) {
  WEIR_CALL(avutil, av_samples_alloc_array_and_samples, audio_data, linesize, nb_channels, nb_samples, sample_fmt,
    align);
}
int av_samples_set_silence(
    uint8_t **audio_data, int offset, int nb_samples, int nb_channels, enum AVSampleFormat sample_fmt) {
  WEIR_CALL(avutil, av_samples_set_silence, audio_data, offset, nb_samples, nb_channels, sample_fmt);
}
int av_strerror(
    int errnum, char *errbuf, size_t errbuf_size) {
  WEIR_CALL(avutil, av_strerror, errnum, errbuf, errbuf_size);
}

// libswresample
int swr_alloc_set_opts2(
    struct SwrContext **ps, AVChannelLayout *out_ch_layout, enum AVSampleFormat out_sample_fmt, int out_sample_rate,
    AVChannelLayout *in_ch_layout, enum AVSampleFormat in_sample_fmt, int in_sample_rate, int log_offset,
    void *log_ctx) {
  WEIR_CALL(swresample, swr_alloc_set_opts2, ps, out_ch_layout, out_sample_fmt, out_sample_rate, in_ch_layout,
    in_sample_fmt, in_sample_rate, log_offset, log_ctx);
}
int swr_convert(
    struct SwrContext *s, uint8_t **out, int out_count, const uint8_t **in, int in_count) {
  WEIR_CALL(swresample, swr_convert, s, out, out_count, in, in_count);
}
void swr_free(struct SwrContext **s) { WEIR_RUN(swresample, swr_free, s); }
int64_t swr_get_delay(struct SwrContext *s, int64_t base) { WEIR_CALL(swresample, swr_get_delay, s, base); }
int swr_get_out_samples(
    struct SwrContext *s, int in_samples) {
  WEIR_CALL(swresample, swr_get_out_samples, s, in_samples);
}
int swr_init(struct SwrContext *s) { WEIR_CALL(swresample, swr_init, s); }
int swr_set_compensation(
    struct SwrContext *s, int sample_delta, int compensation_distance) {
  WEIR_CALL(swresample, swr_set_compensation, s, sample_delta, compensation_distance);
}
int swr_set_matrix(
    struct SwrContext *s, const double *matrix, int stride) {
  WEIR_CALL(swresample, swr_set_matrix, s, matrix, stride);
}

// libswscale
void sws_freeContext(struct SwsContext *swsContext) { WEIR_RUN(swscale, sws_freeContext, swsContext); }
struct SwsContext *sws_getCachedContext(
    struct SwsContext *context, int srcW, int srcH, enum AVPixelFormat srcFormat, int dstW, int dstH,
    enum AVPixelFormat dstFormat, int flags, SwsFilter *srcFilter, SwsFilter *dstFilter, const double *param) {
  WEIR_CALL(swscale, sws_getCachedContext, context, srcW, srcH, srcFormat, dstW, dstH, dstFormat, flags, srcFilter,
    dstFilter, param);
}
const int *sws_getCoefficients(int colorspace) { WEIR_CALL(swscale, sws_getCoefficients, colorspace); }
struct SwsContext *sws_getContext(
    int srcW, int srcH, enum AVPixelFormat srcFormat, int dstW, int dstH, enum AVPixelFormat dstFormat, int flags,
    SwsFilter *srcFilter, SwsFilter *dstFilter, const double *param) {
  WEIR_CALL(swscale, sws_getContext, srcW, srcH, srcFormat, dstW, dstH, dstFormat, flags, srcFilter, dstFilter, param);
}
int sws_scale(
    struct SwsContext *c, const uint8_t *const srcSlice[], const int srcStride[], int srcSliceY, int srcSliceH,
    uint8_t *const dst[], const int dstStride[]) {
  WEIR_CALL(swscale, sws_scale, c, srcSlice, srcStride, srcSliceY, srcSliceH, dst, dstStride);
}
int sws_scale_frame(
    struct SwsContext *c, AVFrame *dst, const AVFrame *src) {
  WEIR_CALL(swscale, sws_scale_frame, c, dst, src);
}
int sws_setColorspaceDetails(
    struct SwsContext *c, const int inv_table[4], int srcRange, const int table[4], int dstRange, int brightness,
    int contrast, int saturation) {
  WEIR_CALL(swscale, sws_setColorspaceDetails, c, inv_table, srcRange, table, dstRange, brightness, contrast,
    saturation);
}

// libavcodec
int av_new_packet(AVPacket *pkt, int size) { WEIR_CALL(avcodec, av_new_packet, pkt, size); }
AVPacket *av_packet_alloc(void) { WEIR_CALL(avcodec, av_packet_alloc); }
void av_packet_free(AVPacket **pkt) { WEIR_RUN(avcodec, av_packet_free, pkt); }
void av_packet_unref(AVPacket *pkt) { WEIR_RUN(avcodec, av_packet_unref, pkt); }
AVCodecContext *avcodec_alloc_context3(const AVCodec *codec) { WEIR_CALL(avcodec, avcodec_alloc_context3, codec); }
const AVCodec *avcodec_find_decoder(enum AVCodecID id) { WEIR_CALL(avcodec, avcodec_find_decoder, id); }
const AVCodec *avcodec_find_decoder_by_name(
    const char *name) {
  WEIR_CALL(avcodec, avcodec_find_decoder_by_name, name);
}
const AVCodec *avcodec_find_encoder_by_name(
    const char *name) {
  WEIR_CALL(avcodec, avcodec_find_encoder_by_name, name);
}
void avcodec_flush_buffers(AVCodecContext *avctx) { WEIR_RUN(avcodec, avcodec_flush_buffers, avctx); }
void avcodec_free_context(AVCodecContext **avctx) { WEIR_RUN(avcodec, avcodec_free_context, avctx); }
const char *avcodec_get_name(enum AVCodecID id) { WEIR_CALL(avcodec, avcodec_get_name, id); }
const char *avcodec_license(void) { WEIR_CALL(avcodec, avcodec_license); }
int avcodec_open2(
    AVCodecContext *avctx, const AVCodec *codec, AVDictionary **options) {
  WEIR_CALL(avcodec, avcodec_open2, avctx, codec, options);
}
int avcodec_receive_frame(
    AVCodecContext *avctx, AVFrame *frame) {
  WEIR_CALL(avcodec, avcodec_receive_frame, avctx, frame);
}
int avcodec_receive_packet(
    AVCodecContext *avctx, AVPacket *avpkt) {
  WEIR_CALL(avcodec, avcodec_receive_packet, avctx, avpkt);
}
int avcodec_send_frame(
    AVCodecContext *avctx, const AVFrame *frame) {
  WEIR_CALL(avcodec, avcodec_send_frame, avctx, frame);
}
int avcodec_send_packet(
    AVCodecContext *avctx, const AVPacket *avpkt) {
  WEIR_CALL(avcodec, avcodec_send_packet, avctx, avpkt);
}
unsigned avcodec_version(void) { WEIR_CALL(avcodec, avcodec_version); }

// libavformat
int av_find_best_stream(
    AVFormatContext *ic, enum AVMediaType type, int wanted_stream_nb, int related_stream, const AVCodec **decoder_ret,
    int flags) {
  WEIR_CALL(avformat, av_find_best_stream, ic, type, wanted_stream_nb, related_stream, decoder_ret, flags);
}
int av_read_frame(AVFormatContext *s, AVPacket *pkt) { WEIR_CALL(avformat, av_read_frame, s, pkt); }
uint8_t *av_stream_get_side_data(
    const AVStream *stream, enum AVPacketSideDataType type, size_t *size) {
  WEIR_CALL(avformat, av_stream_get_side_data, stream, type, size);
}
void avformat_close_input(AVFormatContext **s) { WEIR_RUN(avformat, avformat_close_input, s); }
int avformat_find_stream_info(
    AVFormatContext *ic, AVDictionary **options) {
  WEIR_CALL(avformat, avformat_find_stream_info, ic, options);
}
int avformat_open_input(
    AVFormatContext **ps, const char *url, const AVInputFormat *fmt, AVDictionary **options) {
  WEIR_CALL(avformat, avformat_open_input, ps, url, fmt, options);
}

#pragma GCC visibility pop
