// The GPU itself, its primary context, and what tests ask.
#include "simcuda.h"

struct CUctx_st primary;
int initialized, objects;
static __thread CUcontext stack[16];
__thread int depth;

// What tests ask -------------------------------------------------------------------------------------------------------

static struct { const char *name; int times; } calls[128];

void count_call(const char *name) {
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

// Environment ----------------------------------------------------------------------------------------------------------

long long setting(const char *name, long long otherwise) {
  const char *value = getenv(name);
  return value && *value ? atoll(value) : otherwise;
}

int failure(const char *name) {
  const char *value = getenv("SIMCUDA_FAIL");
  size_t length = strlen(name);
  return value && !strncmp(value, name, length) && value[length] == '=' ? atoi(value + length + 1) : 0;
}

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
  if (!--primary.references) forget_all();
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
