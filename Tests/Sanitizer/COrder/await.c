// Tells Thread Sanitizer that a task which goes on after a continuation sees what was done before it was resumed.
//
// The runtime tells that where the task had been suspended. Where it was resumed before it could be suspended, the runtime
// says nothing (swift_continuation_await), and what is handed over looks like a race. The linker's --wrap puts this function
// before that one. It keeps the place where the task goes on in the upper bits of the flags, which nothing uses.

#include <stdint.h>

#define QUIET __attribute__((disable_sanitizer_instrumentation))
#define ASYNC __attribute__((swiftasynccall)) QUIET

// The beginning of ContinuationAsyncContext of the runtime.
struct context {
  void *parent;
  __attribute__((swiftasynccall)) void (*resume)(__attribute__((swift_async_context)) struct context *);
  uintptr_t flags;
};

void __tsan_acquire(void *address);
__attribute__((swiftcall)) void *swift_task_getCurrent(void);
__attribute__((swiftasynccall)) void __real_swift_continuation_await(struct context *context);

static ASYNC void go_on(__attribute__((swift_async_context)) struct context *context) {
  context->resume = (void *)(context->flags >> 16);
  context->flags &= 0xffff;
  __tsan_acquire(swift_task_getCurrent());
  __attribute__((musttail)) return context->resume(context);
}

ASYNC void __wrap_swift_continuation_await(struct context *context) {
  context->flags = (context->flags & 0xffff) | (uintptr_t)context->resume << 16;
  context->resume = go_on;
  __attribute__((musttail)) return __real_swift_continuation_await(context);
}
