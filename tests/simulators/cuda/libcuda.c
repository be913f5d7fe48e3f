// A CUDA driver for tests: one GPU whose memory is host memory, behind the calls that speakd makes through PyCUDA and
// cuda.bindings. Compiled against NVIDIA's own cuda.h, so that no signature can drift.
//
// It is stricter than a GPU where that catches faults: a device address never equals the host's (but for managed memory,
// where it must), work waits in its stream until somebody synchronises, and freed memory is unmapped.
//
// Environment, read at each call: SIMCUDA_DEVICES, SIMCUDA_INTEGRATED, SIMCUDA_CONCURRENT_MANAGED, SIMCUDA_PAGEABLE,
// SIMCUDA_CC ("8.7"), SIMCUDA_MEMORY_LIMIT (bytes), SIMCUDA_SLOW ("mapped", "managed", "registered": the GPU reads these
// slowly), SIMCUDA_WORK_MS (what synchronising takes), SIMCUDA_FAIL ("cuStreamSynchronize=700": that call fails so).
#define _GNU_SOURCE
#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define DEVICE_OFFSET 0x100000000000ull /* between the host's address and the device's */
#define MANY 4096

typedef enum { MAPPED, MANAGED, REGISTERED } Kind;
typedef struct { char *host; CUdeviceptr device; size_t bytes; Kind kind; } Block;

typedef struct Op { // one piece of work
  void (*run)(struct Op *);
  unsigned long long arguments[4];
  struct Op *next;
} Op;

typedef struct { Op *first, *last; } Work;

struct CUctx_st { int references; };
struct CUgraph_st { Work work; };
struct CUgraphExec_st { Work work; };
struct CUstream_st {
  unsigned flags;
  int priority;
  Work work;
  CUgraph capture; // what is being recorded, or NULL
  CUstreamCaptureMode mode;
  pthread_t by;
  int broken; // the recording
};
struct CUmod_st { int unused; };
struct CUfunc_st { int unused; };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct CUctx_st primary;
static Block blocks[MANY];
static int block_count, objects, initialized;
static size_t bytes_in_use;
static CUstream streams[MANY];
static int stream_count;
static struct CUfunc_st touch_function;
static __thread CUcontext stack[16];
static __thread int depth;

// What tests ask -------------------------------------------------------------------------------------------------------

static struct { const char *name; int times; } calls[128];

static void count_call(const char *name) {
  int i = 0;
  while (i < 127 && calls[i].name && strcmp(calls[i].name, name)) i++;
  calls[i].name = name;
  calls[i].times++;
}

int simcuda_calls(const char *name) {
  for (int i = 0; i < 128 && calls[i].name; i++)
    if (!strcmp(calls[i].name, name)) return calls[i].times;
  return 0;
}

// Memory, streams, graphs and modules that exist.
int simcuda_objects(void) { return block_count + objects; }
int simcuda_context_references(void) { return primary.references; }
int simcuda_stack_depth(void) { return depth; } // of the calling thread

static Block *block_at(CUdeviceptr device) {
  for (int i = 0; i < block_count; i++)
    if (device >= blocks[i].device && device < blocks[i].device + blocks[i].bytes) return &blocks[i];
  return NULL;
}

// The host's address of a device address; NULL if no memory lies there.
void *simcuda_host_of(CUdeviceptr device) {
  Block *block = block_at(device);
  return block ? block->host + (device - block->device) : NULL;
}

// Environment ----------------------------------------------------------------------------------------------------------

static long long setting(const char *name, long long otherwise) {
  const char *value = getenv(name);
  return value && *value ? atoll(value) : otherwise;
}

static int failure(const char *name) {
  const char *value = getenv("SIMCUDA_FAIL");
  size_t length = strlen(name);
  return value && !strncmp(value, name, length) && value[length] == '=' ? atoi(value + length + 1) : 0;
}

static void pause_ms(long long ms) {
  struct timespec t = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&t, NULL);
}

// Every call begins so: it is counted, and fails where the test wants it to.
#define CALL() \
  do { \
    count_call(__func__); \
    int wanted = failure(__func__); \
    if (wanted) return (CUresult)wanted; \
    if (!initialized) return CUDA_ERROR_NOT_INITIALIZED; \
  } while (0)

// The same for calls that need a context. A released one stays on the stack, as with a real driver.
#define CALL_IN_CONTEXT() \
  do { \
    CALL(); \
    if (!depth) return CUDA_ERROR_INVALID_CONTEXT; \
    if (!primary.references) return CUDA_ERROR_CONTEXT_IS_DESTROYED; \
  } while (0)

// Device ---------------------------------------------------------------------------------------------------------------

CUresult cuInit(unsigned flags) {
  count_call(__func__);
  int wanted = failure(__func__);
  if (wanted) return (CUresult)wanted;
  if (setting("SIMCUDA_DEVICES", 1) < 1) return CUDA_ERROR_NO_DEVICE;
  initialized = 1;
  return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version) {
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count) {
  CALL();
  *count = (int)setting("SIMCUDA_DEVICES", 1);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  CALL();
  if (ordinal < 0 || ordinal >= setting("SIMCUDA_DEVICES", 1)) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
  CALL();
  snprintf(name, (size_t)length, "Simulated GPU");
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device) {
  CALL();
  *bytes = 8ull << 30;
  return CUDA_SUCCESS;
}

static void compute_capability(int *major, int *minor) {
  const char *value = getenv("SIMCUDA_CC");
  if (!value || sscanf(value, "%d.%d", major, minor) != 2) *major = 8, *minor = 7;
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device) {
  CALL();
  compute_capability(major, minor);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
  CALL();
  int major, minor;
  compute_capability(&major, &minor);
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_INTEGRATED: *value = (int)setting("SIMCUDA_INTEGRATED", 1); break;
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS: *value = (int)setting("SIMCUDA_CONCURRENT_MANAGED", 0); break;
    case CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS: *value = (int)setting("SIMCUDA_PAGEABLE", 0); break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 8; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = major; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = minor; break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

// Context: the one primary, and each thread's stack ----------------------------------------------------------------------

static void discard(Work *work) {
  while (work->first) {
    Op *op = work->first;
    work->first = op->next;
    free(op);
  }
  work->last = NULL;
}

static void forget(int i) {
  if (blocks[i].kind != REGISTERED) munmap(blocks[i].host, blocks[i].bytes);
  bytes_in_use -= blocks[i].bytes;
  blocks[i] = blocks[--block_count];
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  CALL();
  primary.references++;
  *context = &primary;
  return CUDA_SUCCESS;
}

// Does not pop it from any stack. The last release destroys all that lives in it.
CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  CALL();
  if (!primary.references) return CUDA_ERROR_INVALID_CONTEXT;
  if (!--primary.references)
    while (block_count) forget(block_count - 1);
  return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext context) {
  CALL();
  if (depth == 16) return CUDA_ERROR_UNKNOWN;
  stack[depth++] = context;
  return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext *context) {
  CALL();
  if (!depth) return CUDA_ERROR_INVALID_CONTEXT;
  CUcontext top = stack[--depth];
  if (context) *context = top;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context) {
  CALL();
  *context = depth ? stack[depth - 1] : NULL;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device) {
  CALL_IN_CONTEXT();
  *device = 0;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  CALL_IN_CONTEXT();
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return CUDA_SUCCESS;
}

// Capture --------------------------------------------------------------------------------------------------------------

// What may wait or free is not allowed while the calling thread (in the global mode: any) records.
static CUresult unless_capturing(void) {
  for (int i = 0; i < stream_count; i++) {
    CUstream s = streams[i];
    if (!s->capture || s->mode == CU_STREAM_CAPTURE_MODE_RELAXED) continue;
    if (s->mode == CU_STREAM_CAPTURE_MODE_GLOBAL || pthread_equal(s->by, pthread_self())) {
      s->broken = 1;
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
  }
  return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode) {
  CALL_IN_CONTEXT();
  if (!stream) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (stream->capture) return CUDA_ERROR_ILLEGAL_STATE;
  stream->capture = calloc(1, sizeof *stream->capture);
  stream->mode = mode;
  stream->by = pthread_self();
  stream->broken = 0;
  objects++;
  return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph) {
  CALL_IN_CONTEXT();
  *graph = NULL;
  if (!stream->capture) return CUDA_ERROR_ILLEGAL_STATE;
  if (stream->mode != CU_STREAM_CAPTURE_MODE_RELAXED && !pthread_equal(stream->by, pthread_self()))
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  CUgraph recorded = stream->capture;
  stream->capture = NULL;
  if (stream->broken) {
    discard(&recorded->work);
    free(recorded);
    objects--;
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  }
  *graph = recorded;
  return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status) {
  CALL_IN_CONTEXT();
  *status = !stream || !stream->capture ? CU_STREAM_CAPTURE_STATUS_NONE
            : stream->broken            ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                        : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  return CUDA_SUCCESS;
}

// Memory ---------------------------------------------------------------------------------------------------------------

static CUresult add_block(void *host, size_t bytes, Kind kind) {
  if (block_count == MANY) return CUDA_ERROR_OUT_OF_MEMORY;
  CUdeviceptr address = (CUdeviceptr)(size_t)host;
  blocks[block_count++] = (Block){host, kind == MANAGED ? address : address + DEVICE_OFFSET, bytes, kind};
  bytes_in_use += bytes;
  return CUDA_SUCCESS;
}

static CUresult fits(size_t bytes) {
  if (!bytes) return CUDA_ERROR_INVALID_VALUE;
  CUresult refused = unless_capturing();
  if (refused) return refused;
  long long limit = setting("SIMCUDA_MEMORY_LIMIT", -1);
  return limit >= 0 && bytes_in_use + bytes > (size_t)limit ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

static CUresult allocate(void **host, size_t bytes, Kind kind) {
  CUresult refused = fits(bytes);
  if (refused) return refused;
  *host = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (*host == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  memset(*host, 0xcd, bytes); // nobody may rely on zeros
  pthread_mutex_lock(&lock);
  CUresult result = add_block(*host, bytes, kind);
  pthread_mutex_unlock(&lock);
  return result;
}

CUresult cuMemHostAlloc(void **host, size_t bytes, unsigned flags) {
  CALL_IN_CONTEXT();
  if (!(flags & CU_MEMHOSTALLOC_DEVICEMAP)) return CUDA_ERROR_NOT_SUPPORTED; // of no use to speakd
  return allocate(host, bytes, MAPPED);
}

CUresult cuMemAllocManaged(CUdeviceptr *device, size_t bytes, unsigned flags) {
  CALL_IN_CONTEXT();
  if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST) return CUDA_ERROR_INVALID_VALUE;
  void *host;
  CUresult result = allocate(&host, bytes, MANAGED);
  if (!result) *device = (CUdeviceptr)(size_t)host;
  return result;
}

CUresult cuMemHostRegister(void *host, size_t bytes, unsigned flags) {
  CALL_IN_CONTEXT();
  if ((size_t)host % 4096 || bytes % 4096 || !(flags & CU_MEMHOSTREGISTER_DEVICEMAP)) return CUDA_ERROR_INVALID_VALUE;
  CUresult refused = fits(bytes);
  if (refused) return refused;
  pthread_mutex_lock(&lock);
  CUresult result = add_block(host, bytes, REGISTERED);
  pthread_mutex_unlock(&lock);
  return result;
}

static CUresult release_block(CUdeviceptr address, int by_host, Kind kind) {
  CUresult result = unless_capturing();
  if (result) return result;
  result = CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < block_count; i++) {
    CUdeviceptr have = by_host ? (CUdeviceptr)(size_t)blocks[i].host : blocks[i].device;
    if (have == address && blocks[i].kind == kind) {
      forget(i);
      result = CUDA_SUCCESS;
      break;
    }
  }
  pthread_mutex_unlock(&lock);
  return result;
}

CUresult cuMemFreeHost(void *host) {
  CALL_IN_CONTEXT();
  return release_block((CUdeviceptr)(size_t)host, 1, MAPPED);
}

CUresult cuMemHostUnregister(void *host) {
  CALL_IN_CONTEXT();
  return release_block((CUdeviceptr)(size_t)host, 1, REGISTERED);
}

CUresult cuMemFree(CUdeviceptr device) {
  CALL_IN_CONTEXT();
  return release_block(device, 0, MANAGED);
}

CUresult cuMemHostGetDevicePointer(CUdeviceptr *device, void *host, unsigned flags) {
  CALL_IN_CONTEXT();
  for (int i = 0; i < block_count; i++)
    if (blocks[i].host == host && blocks[i].kind != MANAGED) {
      *device = blocks[i].device;
      return CUDA_SUCCESS;
    }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemGetInfo(size_t *available, size_t *total) {
  CALL_IN_CONTEXT();
  *total = 8ull << 30;
  *available = *total - bytes_in_use;
  return CUDA_SUCCESS;
}

// Streams and their work -------------------------------------------------------------------------------------------------

static void append(Work *work, Op op) {
  Op *copy = malloc(sizeof *copy);
  *copy = op;
  copy->next = NULL;
  if (work->last) work->last->next = copy;
  else work->first = copy;
  work->last = copy;
}

static void run(Work *work) {
  for (Op *op = work->first; op; op = op->next) op->run(op);
}

static CUresult enqueue(CUstream stream, Op op) {
  if (!stream) { // the legacy default stream waits for all blocking ones
    for (int i = 0; i < stream_count; i++)
      if (streams[i]->capture && !(streams[i]->flags & CU_STREAM_NON_BLOCKING)) {
        streams[i]->broken = 1;
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
      }
    op.run(&op);
    return CUDA_SUCCESS;
  }
  if (stream->capture && stream->broken) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  append(stream->capture ? &stream->capture->work : &stream->work, op);
  return CUDA_SUCCESS;
}

static void drain(CUstream stream) {
  Work work = stream->work;
  stream->work = (Work){NULL, NULL};
  run(&work);
  discard(&work);
}

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority) {
  CALL_IN_CONTEXT();
  if (stream_count == MANY) return CUDA_ERROR_OUT_OF_MEMORY;
  *stream = calloc(1, sizeof **stream);
  (*stream)->flags = flags;
  (*stream)->priority = priority > 0 ? 0 : priority < -5 ? -5 : priority; // clamped, as documented
  streams[stream_count++] = *stream;
  objects++;
  return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
  CALL_IN_CONTEXT();
  return cuStreamCreateWithPriority(stream, flags, 0);
}

CUresult cuStreamGetPriority(CUstream stream, int *priority) {
  CALL_IN_CONTEXT();
  *priority = stream->priority;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetFlags(CUstream stream, unsigned *flags) {
  CALL_IN_CONTEXT();
  *flags = stream->flags;
  return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream stream) {
  CALL_IN_CONTEXT();
  if (stream && stream->capture) {
    stream->broken = 1;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  CUresult refused = unless_capturing();
  if (refused) return refused;
  pause_ms(setting("SIMCUDA_WORK_MS", 0));
  if (stream) drain(stream);
  return CUDA_SUCCESS;
}

CUresult cuStreamQuery(CUstream stream) {
  CALL_IN_CONTEXT();
  return stream && stream->work.first ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

// Invalid while anybody records in the context, whatever the mode.
CUresult cuCtxSynchronize(void) {
  CALL_IN_CONTEXT();
  for (int i = 0; i < stream_count; i++)
    if (streams[i]->capture) {
      streams[i]->broken = 1;
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
  for (int i = 0; i < stream_count; i++) drain(streams[i]);
  return CUDA_SUCCESS;
}

CUresult cuStreamDestroy(CUstream stream) {
  CALL_IN_CONTEXT();
  for (int i = 0; i < stream_count; i++)
    if (streams[i] == stream) {
      streams[i] = streams[--stream_count];
      drain(stream);
      free(stream);
      objects--;
      return CUDA_SUCCESS;
    }
  return CUDA_ERROR_INVALID_HANDLE;
}

static void run_fill(Op *op) {
  unsigned *at = simcuda_host_of(op->arguments[0]);
  for (unsigned long long i = 0; i < op->arguments[2]; i++) at[i] = (unsigned)op->arguments[1];
}

static void run_copy(Op *op) {
  memmove(simcuda_host_of(op->arguments[0]), simcuda_host_of(op->arguments[1]), op->arguments[2]);
}

static void run_host(Op *op) { ((CUhostFn)(size_t)op->arguments[0])((void *)(size_t)op->arguments[1]); }

static int holds(CUdeviceptr device, size_t bytes) {
  Block *block = block_at(device);
  return block && device + bytes <= block->device + block->bytes;
}

CUresult cuMemsetD32Async(CUdeviceptr device, unsigned value, size_t count, CUstream stream) {
  CALL_IN_CONTEXT();
  if (!holds(device, count * 4)) return CUDA_ERROR_INVALID_VALUE;
  return enqueue(stream, (Op){run_fill, {device, value, count}, NULL});
}

CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  CALL_IN_CONTEXT();
  if (!holds(to, bytes) || !holds(from, bytes)) return CUDA_ERROR_INVALID_VALUE;
  return enqueue(stream, (Op){run_copy, {to, from, bytes}, NULL});
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *data) {
  CALL_IN_CONTEXT();
  return enqueue(stream, (Op){run_host, {(size_t)function, (size_t)data}, NULL});
}

// Graphs ---------------------------------------------------------------------------------------------------------------

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags) {
  CALL_IN_CONTEXT();
  *exec = calloc(1, sizeof **exec);
  for (Op *op = graph->work.first; op; op = op->next) append(&(*exec)->work, *op);
  objects++;
  return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  CALL_IN_CONTEXT();
  for (Op *op = exec->work.first; op; op = op->next) {
    CUresult result = enqueue(stream, *op);
    if (result) return result;
  }
  return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph graph) {
  CALL_IN_CONTEXT();
  discard(&graph->work);
  free(graph);
  objects--;
  return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec exec) {
  CALL_IN_CONTEXT();
  discard(&exec->work);
  free(exec);
  objects--;
  return CUDA_SUCCESS;
}

// The one kernel that there is: device/cuda_probe.py's ------------------------------------------------------------------

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned options, CUjit_option *names, void **values) {
  for (unsigned i = 0; i < options; i++) // PyCUDA shows these logs
    if (names[i] == CU_JIT_INFO_LOG_BUFFER || names[i] == CU_JIT_ERROR_LOG_BUFFER) *(char *)values[i] = 0;
  CALL_IN_CONTEXT();
  if (!strstr(image, ".version") || !strstr(image, ".entry touch(")) return CUDA_ERROR_INVALID_PTX;
  *module = calloc(1, sizeof **module);
  objects++;
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  CALL_IN_CONTEXT();
  if (strcmp(name, "touch")) return CUDA_ERROR_NOT_FOUND;
  *function = &touch_function;
  return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule module) {
  CALL_IN_CONTEXT();
  free(module);
  objects--;
  return CUDA_SUCCESS;
}

CUresult cuFuncSetBlockShape(CUfunction function, int x, int y, int z) { // long deprecated; PyCUDA still calls it
  CALL_IN_CONTEXT();
  return CUDA_SUCCESS;
}

static void run_touch(Op *op) {
  static const char *names[] = {"mapped", "managed", "registered"};
  const char *slow = getenv("SIMCUDA_SLOW");
  float *at = simcuda_host_of(op->arguments[0]);
  for (unsigned long long i = 0; i < op->arguments[1]; i++) at[i] += 1;
  if (slow && strstr(slow, names[block_at(op->arguments[0])->kind])) pause_ms(2);
}

CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                        unsigned bz, unsigned shared, CUstream stream, void **parameters, void **extra) {
  CALL_IN_CONTEXT();
  struct { CUdeviceptr data; unsigned count; } arguments;
  size_t size = 0;
  void *buffer = NULL;
  for (int i = 0; extra && extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
    if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = extra[i + 1];
    if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE) size = *(size_t *)extra[i + 1];
  }
  if (!buffer || size < 12) return CUDA_ERROR_INVALID_VALUE;
  memcpy(&arguments, buffer, 12);
  if (!holds(arguments.data, arguments.count * 4ull) || gx * bx < arguments.count) return CUDA_ERROR_ILLEGAL_ADDRESS;
  return enqueue(stream, (Op){run_touch, {arguments.data, arguments.count}, NULL});
}

// Names ------------------------------------------------------------------------------------------------------------------

static const struct { int code; const char *name, *text; } errors[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {221, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND", "PTX JIT compiler library not found"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"},
    {801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"},
    {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "operation failed due to a previous error during capture"},
    {906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", "operation would make the legacy stream depend on a capturing one"},
    {908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", "attempt to terminate a thread-local capture from another thread"},
};

CUresult cuGetErrorName(CUresult error, const char **name) {
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
    if (errors[i].code == (int)error) return *name = errors[i].name, CUDA_SUCCESS;
  return *name = NULL, CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **text) {
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
    if (errors[i].code == (int)error) return *text = errors[i].text, CUDA_SUCCESS;
  return *text = NULL, CUDA_ERROR_INVALID_VALUE;
}

// cuda.bindings finds every call through this one. It gets the newest variant that there is here, or none.
CUresult cuGetProcAddress(const char *symbol, void **function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status) {
  static const char *forms[] = {"%s_v2", "%sWithFlags", "%s"};
  Dl_info self;
  dladdr((void *)simcuda_calls, &self);
  void *library = dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  *function = NULL;
  for (int i = 0; i < 3 && !*function; i++) {
    char name[128];
    snprintf(name, sizeof name, forms[i], symbol);
    *function = dlsym(library, name);
  }
  dlclose(library);
  if (status) *status = *function ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
