#pragma once
/* What the C library declares is Glibc's: without this, its headers would be read again here, and the compiler would take
   either module for the one that timespec and its like belong to. */
#pragma clang module import SwiftGlibc
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <libv4l2.h>
#include <linux/videodev2.h>

/* Variadic functions and macros that compose do not reach Swift; constants and inline functions do. Calls give 0 or
   more, or errno negated. */
static inline int weir_v4l2_open(const char *path) {
  if (!v4l2_log_file) v4l2_log_file = fopen("/dev/null", "we"); /* its own lines would bypass our log */
  int fd = v4l2_open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
  return fd < 0 ? -errno : fd;
}

static inline int weir_v4l2_ioctl(int fd, unsigned long request, void *argument) {
  int result;
  do { result = v4l2_ioctl(fd, request, argument); } while (result < 0 && errno == EINTR);
  return result < 0 ? -errno : result;
}

static inline void *weir_v4l2_map(int fd, size_t length, int64_t offset) {
  void *memory = v4l2_mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);
  return memory == MAP_FAILED ? NULL : memory;
}

static const unsigned long weir_querycap = VIDIOC_QUERYCAP;
static const unsigned long weir_enum_fmt = VIDIOC_ENUM_FMT;
static const unsigned long weir_enum_framesizes = VIDIOC_ENUM_FRAMESIZES;
static const unsigned long weir_enum_frameintervals = VIDIOC_ENUM_FRAMEINTERVALS;
static const unsigned long weir_s_fmt = VIDIOC_S_FMT;
static const unsigned long weir_s_parm = VIDIOC_S_PARM;
static const unsigned long weir_reqbufs = VIDIOC_REQBUFS;
static const unsigned long weir_querybuf = VIDIOC_QUERYBUF;
static const unsigned long weir_qbuf = VIDIOC_QBUF;
static const unsigned long weir_dqbuf = VIDIOC_DQBUF;
static const unsigned long weir_streamon = VIDIOC_STREAMON;
static const unsigned long weir_streamoff = VIDIOC_STREAMOFF;
static const unsigned long weir_query_ext_ctrl = VIDIOC_QUERY_EXT_CTRL;
static const unsigned long weir_queryctrl = VIDIOC_QUERYCTRL;
static const unsigned long weir_g_ctrl = VIDIOC_G_CTRL;
static const unsigned long weir_s_ctrl = VIDIOC_S_CTRL;

static const uint32_t weir_pix_yuyv = V4L2_PIX_FMT_YUYV;
static const uint32_t weir_pix_nv12 = V4L2_PIX_FMT_NV12;
static const uint32_t weir_pix_yu12 = V4L2_PIX_FMT_YUV420;
static const uint32_t weir_pix_mjpeg = V4L2_PIX_FMT_MJPEG;
static const uint32_t weir_pix_jpeg = V4L2_PIX_FMT_JPEG;
static const uint32_t weir_pix_h264 = V4L2_PIX_FMT_H264;

static const uint32_t weir_cap_video_capture = V4L2_CAP_VIDEO_CAPTURE;
static const uint32_t weir_cap_streaming = V4L2_CAP_STREAMING;
static const uint32_t weir_cap_memory_to_memory = V4L2_CAP_VIDEO_M2M | V4L2_CAP_VIDEO_M2M_MPLANE;
static const uint32_t weir_cap_device_caps = V4L2_CAP_DEVICE_CAPS;
static const uint32_t weir_buffer_error = V4L2_BUF_FLAG_ERROR;
static const uint32_t weir_buffer_timestamp_mask = V4L2_BUF_FLAG_TIMESTAMP_MASK;
static const uint32_t weir_buffer_timestamp_monotonic = V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC;
static const uint32_t weir_format_emulated = V4L2_FMT_FLAG_EMULATED;
static const uint32_t weir_control_disabled = V4L2_CTRL_FLAG_DISABLED;
static const uint32_t weir_control_next = V4L2_CTRL_FLAG_NEXT_CTRL;
static const uint32_t weir_control_key_frame = V4L2_CID_MPEG_VIDEO_FORCE_KEY_FRAME;
