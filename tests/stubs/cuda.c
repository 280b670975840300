// A driver without a GPU: what the tests load in place of libcuda.so.1.
//
// Device memory is host memory. Each stream has a time until which it is busy, on the host's clock; work moves that
// time on, and waiting waits for it, so that programs take about as long as on a slow GPU. Products are not computed.
//
// Environment:
//   STUB_INIT=CODE          what cuInit returns
//   STUB_VERSION=13000      CUDA version of the driver
//   STUB_DEVICES=1          how many GPUs there are
//   STUB_MEMORY=BYTES       size of each GPU's memory
//   STUB_USED=BYTES         what other programs hold of it
//   STUB_TICK=32            steps of the nanosecond timer
//   STUB_FAIL=NAME:N:CODE   call N (from 1) of function NAME fails; codes from 700 on stay
//   STUB_WRONG=1            copies from the device are wrong
// Built with -DOLD, there is no cuEventElapsedTime_v2; with -DBARE, no cuMemsetD8Async.

#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "stub.h"

typedef struct Stream {
    int64_t busy_until;
} Stream;

typedef struct Event {
    int64_t at;
} Event;

static Stream legacy;
static Stream *streams[256];
static int stream_count;
static int sticky;
static int device_count = 1;
static int64_t used_memory;

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int64_t setting(const char *name, int64_t otherwise) {
    const char *text = getenv(name);
    return text ? atoll(text) : otherwise;
}

int stub_fail(const char *name) {
    static const char *wanted;
    static char which[64];
    static int64_t nth, code, calls;
    if (!wanted) {
        wanted = getenv("STUB_FAIL");
        if (!wanted || sscanf(wanted, "%63[^:]:%ld:%ld", which, &nth, &code) != 3) wanted = "";
    }
    if (sticky) return sticky;
    if (!*wanted || strcmp(which, name) != 0 || ++calls != nth) return 0;
    if (code >= 700) sticky = (int)code;
    return (int)code;
}

#define MAY_FAIL                               \
    do {                                       \
        int code = stub_fail(__func__);        \
        if (code) return code;                 \
    } while (0)

static Stream *of(void *stream) { return stream ? stream : &legacy; }

static void wait_until(int64_t time) {
    while (now() < time) {}
}

void stub_work(void *raw, int64_t ns) {
    Stream *stream = of(raw);
    int64_t start = now() + 1500;
    if (stream->busy_until + 800 > start) start = stream->busy_until + 800;
    stream->busy_until = start + ns;
}

int cuInit(unsigned flags) { (void)flags; return (int)setting("STUB_INIT", 0); }
int cuDriverGetVersion(int *version) { *version = (int)setting("STUB_VERSION", 13000); return 0; }
int cuGetErrorName(int code, const char **name) {
    *name = code == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : code == 100 ? "CUDA_ERROR_NO_DEVICE" : code == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_STUB";
    return 0;
}
int cuGetErrorString(int code, const char **text) {
    *text = code == 2 ? "out of memory" : code == 100 ? "no CUDA-capable device is detected" : code == 700 ? "an illegal memory access was encountered" : "the stub was told to fail";
    return 0;
}
int cuDeviceGetCount(int *count) {
    MAY_FAIL;
    *count = device_count = (int)setting("STUB_DEVICES", 1);
    return 0;
}
int cuDeviceGet(int *device, int index) { MAY_FAIL; *device = index; return 0; }
int cuDeviceGetName(char *name, int size, int device) { MAY_FAIL; snprintf(name, size, "Stub GPU %d", device); return 0; }
int cuDeviceGetAttribute(int *value, int which, int device) {
    MAY_FAIL;
    (void)device;
    switch (which) {
    case 13: *value = 1980000; break;  // clock in kHz
    case 16: *value = 132; break;      // multiprocessors
    case 38: *value = 1 << 20; break;  // second-level cache
    case 75: *value = 9; break;
    case 76: *value = 0; break;
    default: *value = 1;
    }
    return 0;
}
int cuDevicePrimaryCtxRetain(void **context, int device) { MAY_FAIL; *context = (void *)(intptr_t)(device + 1); return 0; }
int cuDevicePrimaryCtxRelease_v2(int device) { (void)device; return 0; }
int cuCtxSetCurrent(void *context) { MAY_FAIL; (void)context; return 0; }
int cuCtxSynchronize(void) {
    MAY_FAIL;
    wait_until(legacy.busy_until);
    for (int i = 0; i < stream_count; i++)
        if (streams[i]) wait_until(streams[i]->busy_until);
    return 0;
}

static int64_t total_memory(void) { return setting("STUB_MEMORY", 16LL << 30); }

int cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
    MAY_FAIL;
    *total = total_memory();
    *free_bytes = *total - used_memory - setting("STUB_USED", 0);
    return 0;
}
int cuMemAlloc_v2(uint64_t *pointer, size_t bytes) {
    MAY_FAIL;
    if (used_memory + (int64_t)bytes > total_memory()) return 2;
    char *memory = calloc(1, bytes + 64);
    if (!memory) return 2;
    *(size_t *)memory = bytes;
    used_memory += bytes;
    *pointer = (uint64_t)(uintptr_t)(memory + 64);
    return 0;
}
int cuMemFree_v2(uint64_t pointer) {
    MAY_FAIL;
    char *memory = (char *)(uintptr_t)pointer - 64;
    used_memory -= *(size_t *)memory;
    free(memory);
    return 0;
}
int cuMemHostAlloc(void **pointer, size_t bytes, unsigned flags) { MAY_FAIL; (void)flags; *pointer = calloc(1, bytes); return 0; }
int cuMemFreeHost(void *pointer) { free(pointer); return 0; }

// 25 GB/s.
static int64_t copy_time(size_t bytes) { return 1000 + (int64_t)(bytes / 25); }

static void move(void *to, const void *from, size_t bytes) { memmove(to, from, bytes); }

int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes) {
    MAY_FAIL;
    stub_work(0, copy_time(bytes));
    move((void *)(uintptr_t)to, from, bytes);
    wait_until(legacy.busy_until);
    return 0;
}
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes) {
    MAY_FAIL;
    stub_work(0, copy_time(bytes));
    move(to, (void *)(uintptr_t)from, bytes);
    wait_until(legacy.busy_until);
    return 0;
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream) {
    MAY_FAIL;
    stub_work(stream, copy_time(bytes));
    move((void *)(uintptr_t)to, from, bytes);
    return 0;
}
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream) {
    MAY_FAIL;
    stub_work(stream, copy_time(bytes));
    move(to, (void *)(uintptr_t)from, bytes);
    if (setting("STUB_WRONG", 0)) *(char *)to ^= 1;
    return 0;
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *stream) {
    MAY_FAIL;
    stub_work(stream, copy_time(bytes) / 40);
    move((void *)(uintptr_t)to, (void *)(uintptr_t)from, bytes);
    return 0;
}
#ifndef BARE
int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void *stream) {
    MAY_FAIL;
    stub_work(stream, copy_time(bytes) / 40);
    memset((void *)(uintptr_t)to, value, bytes);
    return 0;
}
#endif

int cuStreamCreate(void **stream, unsigned flags) {
    MAY_FAIL;
    (void)flags;
    Stream *made = calloc(1, sizeof *made);
    for (int i = 0; i < 256; i++)
        if (!streams[i]) {
            streams[i] = made;
            if (i >= stream_count) stream_count = i + 1;
            break;
        }
    *stream = made;
    return 0;
}
int cuStreamDestroy_v2(void *stream) {
    for (int i = 0; i < stream_count; i++)
        if (streams[i] == stream) streams[i] = 0;
    free(stream);
    return 0;
}
int cuStreamSynchronize(void *stream) { MAY_FAIL; wait_until(of(stream)->busy_until); return 0; }
int cuStreamWaitEvent(void *raw, void *event, unsigned flags) {
    MAY_FAIL;
    (void)flags;
    Stream *stream = of(raw);
    int64_t at = ((Event *)event)->at;
    if (at > stream->busy_until) stream->busy_until = at;
    return 0;
}

int cuEventCreate(void **event, unsigned flags) { MAY_FAIL; (void)flags; *event = calloc(1, sizeof(Event)); return 0; }
int cuEventDestroy_v2(void *event) { free(event); return 0; }
int cuEventRecord(void *event, void *stream) {
    MAY_FAIL;
    int64_t time = now();
    ((Event *)event)->at = of(stream)->busy_until > time ? of(stream)->busy_until : time;
    return 0;
}
int cuEventSynchronize(void *event) { MAY_FAIL; wait_until(((Event *)event)->at); return 0; }
static int elapsed(float *ms, void *from, void *to) {
    *ms = (float)((((Event *)to)->at - ((Event *)from)->at) / 1e6);
    return 0;
}
int cuEventElapsedTime(float *ms, void *from, void *to) { MAY_FAIL; return elapsed(ms, from, to); }
#ifndef OLD
int cuEventElapsedTime_v2(float *ms, void *from, void *to) { MAY_FAIL; return elapsed(ms, from, to); }
#endif

int cuModuleLoadData(void **module, const void *image) { MAY_FAIL; *module = (void *)image; return strstr(image, ".entry spin") ? 0 : 218; }
int cuModuleUnload(void *module) { (void)module; return 0; }
int cuModuleGetFunction(void **function, void *module, const char *name) {
    MAY_FAIL;
    (void)module;
    *function = (void *)(intptr_t)(strcmp(name, "spin") == 0 ? 1 : 2);
    return 0;
}

typedef struct Flag {
    int64_t at;
    volatile uint32_t *word;
} Flag;

static void *set_flag(void *argument) {
    Flag *flag = argument;
    wait_until(flag->at);
    *flag->word = 1;
    free(flag);
    return 0;
}

int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **arguments, void **extra) {
    MAY_FAIL;
    (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared, (void)extra;
    uint64_t first = *(uint64_t *)arguments[0];
    if ((intptr_t)function == 2) {
        *(uint64_t *)(uintptr_t)first = (uint64_t)setting("STUB_TICK", 32);
        return 0;
    }
    uint64_t cycles = *(uint64_t *)arguments[1], flag = *(uint64_t *)arguments[2];
    stub_work(stream, (int64_t)first + (int64_t)(cycles / 1.98) + 700);
    if (flag) {
        Flag *later = malloc(sizeof *later);
        *later = (Flag){of(stream)->busy_until, (uint32_t *)(uintptr_t)flag};
        pthread_t thread;
        if (pthread_create(&thread, 0, set_flag, later) == 0) pthread_detach(thread);
    }
    return 0;
}
