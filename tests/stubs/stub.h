// What the two stub libraries share.
#include <stddef.h>
#include <stdint.h>

typedef struct Gemm {
    int ta, tb, m, n, k, batch, type, lda, ldb;
    int64_t stride_a, stride_b;
    uint64_t a, b, c;
} Gemm;

// Whether this call of `name` is to fail, and how.
int stub_fail(const char *name);
// Makes a stream busy for `ns`.
void stub_work(void *stream, int64_t ns);
int stub_capturing(void *stream);
void stub_gemm(Gemm gemm);
// Results in this memory were overwritten.
void stub_forget(uint64_t from, size_t bytes);
void stub_compute(uint64_t from, size_t bytes);

// Bytes of an element, by cudaDataType.
static inline int64_t stub_size(int type) { return type == 1 ? 8 : type == 0 ? 4 : 2; }
