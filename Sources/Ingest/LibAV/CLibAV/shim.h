#pragma once
/* What the C library declares is Glibc's: without this, its headers would be read again here, and the compiler would take
   either module for the one that timespec and its like belong to. */
#pragma clang module import SwiftGlibc
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/avutil.h>
#include <libavutil/channel_layout.h>
#include <libavutil/display.h>
#include <libavutil/error.h>
#include <libavutil/frame.h>
#include <libavutil/hwcontext.h>
#include <libavutil/imgutils.h>
#include <libavutil/log.h>
#include <libavutil/opt.h>
#include <libswresample/swresample.h>
#include <libswscale/swscale.h>

/* Loads libav (CLibAVCalls). A process that may open no files later calls it first; elsewhere the first call of a function of
   libav does so. */
void weir_load_libav(void);
const char *weir_libav_failure(void);

/* Macros that cast or compose do not reach Swift; constants and inline functions do. */
static const int weir_averror_again = AVERROR(EAGAIN);
static const int weir_averror_eof = AVERROR_EOF;
static const int weir_flag_global_header = AV_CODEC_FLAG_GLOBAL_HEADER;
static const int weir_flag_qscale = AV_CODEC_FLAG_QSCALE;
static const int weir_flag2_skip_manual = AV_CODEC_FLAG2_SKIP_MANUAL;
static const int weir_flag_bitexact = AV_CODEC_FLAG_BITEXACT;
static const int64_t weir_no_time = AV_NOPTS_VALUE;
static const int weir_error_invalid_data = AVERROR_INVALIDDATA;
