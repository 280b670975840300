// cuBLAS without a GPU: what the tests load in place of libcublas.so.13. See cuda.c.
//
//   STUB_CHOOSING=NS        host time of a product before its launch

#include <stdlib.h>
#include <time.h>
#include "stub.h"

typedef struct Handle {
    void *stream;
} Handle;

int cublasCreate_v2(void **handle) {
    int code = stub_fail(__func__);
    if (code) return code;
    *handle = calloc(1, sizeof(Handle));
    return 0;
}
int cublasDestroy_v2(void *handle) { free(handle); return stub_fail(__func__); }
int cublasSetStream_v2(void *handle, void *stream) { ((Handle *)handle)->stream = stream; return 0; }
int cublasGetVersion_v2(void *handle, int *version) {
    (void)handle;
    const char *text = getenv("STUB_CUBLAS_VERSION");
    *version = text ? atoi(text) : 130100;
    return 0;
}

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

// 100 TFLOP/s in half precision, and 1.2 µs besides.
static void run(Handle *handle, double products, int type) {
    const char *choosing = getenv("STUB_CHOOSING");
    int64_t until = now() + (choosing ? atoll(choosing) : 0);
    while (now() < until) {}
    stub_work(handle->stream, 1200 + (int64_t)(2.0 * products / (type == 1 ? 1e4 : type == 0 ? 2e4 : 1e5)));
}

int cublasGemmEx(void *handle, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int type_a, int lda,
                 const void *b, int type_b, int ldb, const void *beta, void *c, int type_c, int ldc, int compute, int algorithm) {
    int code = stub_fail(__func__);
    if (code) return code;
    (void)ta, (void)tb, (void)alpha, (void)a, (void)lda, (void)b, (void)ldb, (void)beta, (void)type_b;
    (void)c, (void)type_c, (void)ldc, (void)compute, (void)algorithm;
    run(handle, (double)m * n * k, type_a);
    return 0;
}
int cublasGemmStridedBatchedEx(void *handle, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int type_a,
                               int lda, long long stride_a, const void *b, int type_b, int ldb, long long stride_b,
                               const void *beta, void *c, int type_c, int ldc, long long stride_c, int batch, int compute,
                               int algorithm) {
    int code = stub_fail(__func__);
    if (code) return code;
    (void)ta, (void)tb, (void)alpha, (void)a, (void)lda, (void)stride_a, (void)b, (void)ldb, (void)stride_b, (void)beta;
    (void)type_b, (void)c, (void)type_c, (void)ldc, (void)stride_c, (void)compute, (void)algorithm;
    run(handle, (double)m * n * k * batch, type_a);
    return 0;
}
