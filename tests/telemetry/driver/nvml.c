/* A stand-in for NVIDIA's driver library, loaded by the real nvidia-ml-py. It plays what the file `machine` beside it
 * says, looked at again at every call, so that a machine can change under a running process:
 *
 *   gpus 8                                   how many there are, up to 64
 *   mig 0 3                                  GPU 0 is divided into three slices
 *   answer nvmlDeviceGetPowerUsage 3         the function answers this return code
 *   answer nvmlDeviceGetPowerUsage@1 15      the same, of GPU 1 only
 *   answer * 15                              every function
 *   slow nvmlDeviceGetMemoryInfo 500         the function takes this many milliseconds
 *   value nvmlDeviceGetTemperature@2 91      what it finds, in NVML's units
 *   xid 1 79                                 GPU 1 has had this error; told once to a process, in the order of the lines
 *   runs 1 4711 512                          process 4711 holds 512 MiB of GPU 1; such lines replace the one that
 *                                            every GPU has else; -1: the driver does not tell how much
 *
 * The last line that fits a call counts. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { OK = 0, UNINITIALIZED = 1, INVALID = 2, UNSUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7, TIMEOUT = 10 };
enum { GPUS = 64, SLICES = 8, LINES = 64 };
typedef unsigned long long u64;
typedef struct { unsigned gpu; int slice; } Handle; /* slice -1: the GPU itself */
typedef struct { u64 total, free, used; } Memory;
typedef struct { unsigned gpu, memory; } Utilization;
typedef struct { unsigned pid; u64 used; unsigned gpu_instance, compute_instance; } Process;

static Handle handles[GPUS][SLICES + 1];
static int opened;

/* The lines of the file, read again when another file lies in its place. */
static char lines[LINES][256];
static unsigned line_count;

static void look(void) {
    static char path[4096];
    static struct stat seen;
    struct stat now;
    Dl_info self;
    if (!path[0] && dladdr((void *)look, &self)) {
        snprintf(path, sizeof path, "%s", self.dli_fname);
        char *slash = strrchr(path, '/');
        snprintf(slash ? slash + 1 : path, sizeof path - (slash ? slash + 1 - path : 0), "machine");
    }
    if (stat(path, &now)) {
        line_count = 0;
        memset(&seen, 0, sizeof seen);
        return;
    }
    if (now.st_ino == seen.st_ino && !memcmp(&now.st_mtim, &seen.st_mtim, sizeof now.st_mtim)) return;
    FILE *file = fopen(path, "r");
    if (!file) return;
    for (line_count = 0; line_count < LINES && fgets(lines[line_count], sizeof lines[0], file);) line_count++;
    fclose(file);
    seen = now;
}

/* The number that the machine's last fitting line gives for `word name`, or `otherwise`. */
static u64 told(const char *word, const char *name, int gpu, u64 otherwise) {
    char first[32], second[128], at[160];
    u64 number;
    look();
    for (unsigned i = 0; i < line_count; i++) {
        if (strncmp(lines[i], word, strlen(word)) || sscanf(lines[i], "%31s %127s %llu", first, second, &number) != 3)
            continue;
        snprintf(at, sizeof at, "%s@%d", name, gpu);
        if (!strcmp(first, word) && (!strcmp(second, "*") || !strcmp(second, name) || !strcmp(second, at)))
            otherwise = number;
    }
    return otherwise;
}

static unsigned gpu_count(void) {
    unsigned count = 0;
    look();
    for (unsigned i = 0; i < line_count; i++) sscanf(lines[i], "gpus %u", &count);
    return count > GPUS ? GPUS : count;
}

static unsigned slice_count(unsigned gpu) {
    char name[16];
    snprintf(name, sizeof name, "%u", gpu);
    unsigned count = told("mig", name, -1, 0);
    return count > SLICES ? SLICES : count;
}

/* What every call begins with: its delay, its fault. */
static int begin(const char *name, int gpu) {
    u64 delay_ms = told("slow", name, gpu, 0);
    struct timespec delay = {delay_ms / 1000, delay_ms % 1000 * 1000000};
    if (delay_ms) nanosleep(&delay, NULL);
    u64 code = told("answer", name, gpu, OK);
    return code ? (int)code : opened || strstr(name, "nvmlInit") ? OK : UNINITIALIZED;
}

#define BEGIN(gpu) do { int code_ = begin(__func__, gpu); if (code_) return code_; } while (0)
#define NUMBER(handle, otherwise) told("value", __func__, (handle)->gpu, otherwise)
#define WHOLE(handle) do { if ((handle)->slice >= 0) return UNSUPPORTED; } while (0)

int nvmlInitWithFlags(unsigned flags) { (void)flags; BEGIN(-1); opened++; return OK; }
int nvmlShutdown(void) { BEGIN(-1); opened--; return OK; }

const char *nvmlErrorString(int code) {
    static char text[32];
    snprintf(text, sizeof text, "stand-in's error %d", code);
    return text;
}

int nvmlDeviceGetCount_v2(unsigned *count) { BEGIN(-1); *count = gpu_count(); return OK; }

int nvmlDeviceGetHandleByIndex_v2(unsigned index, Handle **handle) {
    BEGIN((int)index);
    if (index >= gpu_count()) return INVALID;
    handles[index][0] = (Handle){index, -1};
    *handle = &handles[index][0];
    return OK;
}

int nvmlDeviceGetMigMode(Handle *handle, unsigned *current, unsigned *pending) {
    BEGIN((int)handle->gpu);
    *current = *pending = slice_count(handle->gpu) > 0;
    return OK;
}

int nvmlDeviceGetMaxMigDeviceCount(Handle *handle, unsigned *count) {
    BEGIN((int)handle->gpu);
    *count = slice_count(handle->gpu) ? SLICES : 0;
    return OK;
}

int nvmlDeviceGetMigDeviceHandleByIndex(Handle *handle, unsigned index, Handle **slice) {
    BEGIN((int)handle->gpu);
    if (index >= slice_count(handle->gpu)) return NOT_FOUND;
    handles[handle->gpu][index + 1] = (Handle){handle->gpu, (int)index};
    *slice = &handles[handle->gpu][index + 1];
    return OK;
}

int nvmlDeviceGetUUID(Handle *handle, char *uuid, unsigned length) {
    BEGIN((int)handle->gpu);
    if (handle->slice < 0) snprintf(uuid, length, "GPU-%u", handle->gpu);
    else snprintf(uuid, length, "MIG-%u-%d", handle->gpu, handle->slice);
    return OK;
}

int nvmlDeviceGetName(Handle *handle, char *name, unsigned length) {
    BEGIN((int)handle->gpu);
    snprintf(name, length, handle->slice < 0 ? "Stand-in 80GB" : "Stand-in 80GB MIG 1g.10gb");
    return OK;
}

int nvmlDeviceGetMemoryInfo(Handle *handle, Memory *memory) {
    BEGIN((int)handle->gpu);
    memory->total = (handle->slice < 0 ? 80ull : 10ull) << 30;
    memory->used = NUMBER(handle, 2ull << 30);
    memory->free = memory->total - memory->used;
    return OK;
}

int nvmlDeviceGetUtilizationRates(Handle *handle, Utilization *rates) {
    BEGIN((int)handle->gpu);
    WHOLE(handle);
    rates->gpu = (unsigned)NUMBER(handle, 50);
    rates->memory = 20;
    return OK;
}

int nvmlDeviceGetTemperature(Handle *handle, int sensor, unsigned *celsius) {
    (void)sensor;
    BEGIN((int)handle->gpu);
    WHOLE(handle);
    *celsius = (unsigned)NUMBER(handle, 40);
    return OK;
}

int nvmlDeviceGetPowerUsage(Handle *handle, unsigned *milliwatts) {
    BEGIN((int)handle->gpu);
    WHOLE(handle);
    *milliwatts = (unsigned)NUMBER(handle, 300000);
    return OK;
}

int nvmlDeviceGetClockInfo(Handle *handle, int clock, unsigned *megahertz) {
    (void)clock;
    BEGIN((int)handle->gpu);
    WHOLE(handle);
    *megahertz = (unsigned)NUMBER(handle, 1410);
    return OK;
}

int nvmlDeviceGetCurrentClocksEventReasons(Handle *handle, u64 *reasons) {
    BEGIN((int)handle->gpu);
    WHOLE(handle);
    *reasons = NUMBER(handle, 0);
    return OK;
}

int nvmlDeviceGetTotalEccErrors(Handle *handle, int kind, int counter, u64 *count) {
    (void)kind, (void)counter;
    BEGIN((int)handle->gpu);
    WHOLE(handle);
    *count = NUMBER(handle, 0);
    return OK;
}

/* The number of lines `word A B C`, after `skip` of them; what the first one says goes to what `values` points at. */
static unsigned lines_of(const char *word, unsigned skip, int gpu, long long values[3]) {
    char first[32];
    long long found[3];
    unsigned count = 0;
    look();
    for (unsigned i = 0; i < line_count; i++) {
        found[2] = 0;
        if (sscanf(lines[i], "%31s %lld %lld %lld", first, &found[0], &found[1], &found[2]) < 3 || strcmp(first, word)
            || (gpu >= 0 && found[0] != gpu))
            continue;
        if (count++ == skip) memcpy(values, found, sizeof found);
    }
    return count;
}

int nvmlDeviceGetComputeRunningProcesses_v3(Handle *handle, unsigned *count, Process *processes) {
    BEGIN((int)handle->gpu);
    long long told_[3];
    unsigned lines = lines_of("runs", 0, (int)handle->gpu, told_);
    unsigned running = lines ? lines : (unsigned)NUMBER(handle, 1), room = *count;
    *count = running;
    if (room < running) return TOO_SMALL;
    for (unsigned i = 0; i < running; i++) {
        processes[i] = (Process){4000 + i, 1ull << 30, ~0u, ~0u};
        if (!lines) continue;
        lines_of("runs", i, (int)handle->gpu, told_);
        processes[i].pid = (unsigned)told_[1];
        processes[i].used = told_[2] < 0 ? ~0ull : (u64)told_[2] << 20;
    }
    return OK;
}

/* Xid errors. One set of events is enough. */
typedef struct { Handle *device; u64 type, data; unsigned gpu_instance, compute_instance; } Event;
static unsigned registered[GPUS], xids_told;

int nvmlEventSetCreate(void **set) { BEGIN(-1); *set = registered; return OK; }
int nvmlEventSetFree(void *set) { (void)set; BEGIN(-1); memset(registered, 0, sizeof registered); return OK; }

int nvmlDeviceRegisterEvents(Handle *handle, u64 types, void *set) {
    (void)types, (void)set;
    BEGIN((int)handle->gpu);
    WHOLE(handle);
    registered[handle->gpu] = 1;
    return OK;
}

int nvmlEventSetWait_v2(void *set, Event *event, unsigned timeout_ms) {
    (void)set, (void)timeout_ms;
    BEGIN(-1);
    long long told_[3];
    while (lines_of("xid", xids_told, -1, told_) > xids_told) {
        xids_told++;
        if (told_[0] < 0 || told_[0] >= GPUS || !registered[told_[0]]) continue;
        *event = (Event){&handles[told_[0]][0], 8, (u64)told_[2 - 1], ~0u, ~0u};
        return OK;
    }
    return TIMEOUT;
}
