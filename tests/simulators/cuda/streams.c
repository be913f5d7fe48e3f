// Streams and the work in them, its recording as graphs, and the one kernel that there is.
#include "simcuda.h"

static CUstream streams[MANY];
static int stream_count;
static struct CUfunc_st touch_function;

static void pause_ms(long long ms) {
  struct timespec t = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&t, NULL);
}

static void discard(Work *work) {
  while (work->first) {
    Op *op = work->first;
    work->first = op->next;
    free(op);
  }
  work->last = NULL;
}

// Capture --------------------------------------------------------------------------------------------------------------

// What may wait or free is not allowed while the calling thread (in the global mode: any) records.
CUresult unless_capturing(void) {
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

CUresult cuModuleLoadData(CUmodule *module, const void *image) {
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
  CUdeviceptr data = *(CUdeviceptr *)parameters[0];
  unsigned count = *(unsigned *)parameters[1];
  if (!holds(data, count * 4ull) || gx * bx < count) return CUDA_ERROR_ILLEGAL_ADDRESS;
  return enqueue(stream, (Op){run_touch, {data, count}, NULL});
}
