// A CUDA driver for tests: one GPU whose memory is host memory, behind the calls that speakd makes through PyCUDA and
// cuda.bindings. Compiled against NVIDIA's own cuda.h, so that no signature can drift.
//
// It is stricter than a GPU where that catches faults: a device address never equals the host's (but for managed memory,
// where it must), work waits in its stream until somebody synchronises, and freed memory is unmapped.
//
// Environment, read at each call: SIMCUDA_DEVICES, SIMCUDA_INTEGRATED, SIMCUDA_CONCURRENT_MANAGED, SIMCUDA_PAGEABLE,
// SIMCUDA_CC ("8.7"), SIMCUDA_MEMORY_LIMIT (bytes), SIMCUDA_SLOW ("mapped", "managed", "registered": the GPU reads these
// slowly), SIMCUDA_WORK_MS (what synchronising takes), SIMCUDA_FAIL ("cuStreamSynchronize=700": that call fails so).
#pragma once
#define _GNU_SOURCE
#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

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

// device.c
extern struct CUctx_st primary;
extern __thread int depth; // of the calling thread's stack of contexts
extern int initialized;
extern int objects; // that exist, besides memory
void count_call(const char *name);
long long setting(const char *name, long long otherwise); // an integer from the environment
int failure(const char *name);                            // the error that the test wants this call to give, or 0

// memory.c
extern int block_count;
Block *block_at(CUdeviceptr device);
int holds(CUdeviceptr device, size_t bytes);
void *simcuda_host_of(CUdeviceptr device);
void forget_all(void);

// streams.c
CUresult unless_capturing(void);

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
