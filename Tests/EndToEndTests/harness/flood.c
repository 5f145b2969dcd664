// Sends a datagram, which comes by standard input, to a port of loopback: so many times within so many seconds, each with another
// transaction of STUN. Prints how many were sent, how many came back, and the seconds that it took.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { batch = 32, most = 2048, transaction = 8 };

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static long answers(int descriptor) {
  char rest[most];
  long count = 0;
  while (recv(descriptor, rest, sizeof rest, MSG_DONTWAIT) > 0) count++;
  return count;
}

int main(int count, char **words) {
  static char datagrams[batch][most];
  static struct iovec parts[batch];
  static struct mmsghdr messages[batch];
  if (count != 4) return 2;
  long total = atol(words[2]), sent = 0, came = 0;
  double seconds = atof(words[3]);
  ssize_t size = read(STDIN_FILENO, datagrams[0], most);
  if (size < transaction + 8 || total <= 0 || seconds <= 0) return 2;
  for (int place = 0; place < batch; place++) {
    memcpy(datagrams[place], datagrams[0], (size_t)size);
    parts[place] = (struct iovec){.iov_base = datagrams[place], .iov_len = (size_t)size};
    messages[place].msg_hdr = (struct msghdr){.msg_iov = &parts[place], .msg_iovlen = 1};
  }
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(words[1]))};
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int descriptor = socket(AF_INET, SOCK_DGRAM, 0);
  if (descriptor < 0 || connect(descriptor, (struct sockaddr *)&to, sizeof to) != 0) return 1;
  double began = now();
  while (sent < total) {
    long due = (long)((double)total * (now() - began) / seconds);
    if (due > total) due = total;
    while (sent < due) {
      int some = due - sent < batch ? (int)(due - sent) : batch;
      for (int place = 0; place < some; place++) {
        int64_t number = sent + place;
        memcpy(datagrams[place] + transaction, &number, sizeof number);
      }
      int done = sendmmsg(descriptor, messages, (unsigned)some, 0);
      if (done < 0) return 1;
      sent += done;
    }
    came += answers(descriptor);
    usleep(1000);
  }
  double took = now() - began;
  usleep(300000);
  came += answers(descriptor);
  printf("%ld %ld %.3f\n", sent, came, took);
  return 0;
}
