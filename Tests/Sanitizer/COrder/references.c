// Tells Thread Sanitizer of the order that reference counts make.
//
// A reader holds a copy of an array, gives it up, and the owner, who is alone with the array then, changes it in place. The
// runtime counts with atomic instructions, but is not instrumented, and the change looks like a race with the reader. The
// linker's --wrap puts these functions before the runtime's: what was done before a reference was given up comes before what
// is done by who finds that it has the only one.

#include <stdbool.h>

void __tsan_acquire(void *address);
void __tsan_release(void *address);
void __real_swift_release(void *object);
bool __real_swift_isUniquelyReferenced_nonNull_native(const void *object);

void __wrap_swift_release(void *object) {
  if (object) __tsan_release(object);
  __real_swift_release(object);
}

bool __wrap_swift_isUniquelyReferenced_nonNull_native(const void *object) {
  bool is_alone = __real_swift_isUniquelyReferenced_nonNull_native(object);
  if (is_alone) __tsan_acquire((void *)object);
  return is_alone;
}
