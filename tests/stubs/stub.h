// What the two stub libraries share.
#include <stdint.h>

// Whether this call of `name` is to fail, and how.
int stub_fail(const char *name);
// Makes a stream busy for `ns`.
void stub_work(void *stream, int64_t ns);
