// Memory of the three kinds that host and device share.
#include "simcuda.h"

#define DEVICE_OFFSET 0x100000000000ull /* between the host's address and the device's */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Block blocks[MANY];
int block_count;
static size_t bytes_in_use;

Block *block_at(CUdeviceptr device) {
  for (int i = 0; i < block_count; i++)
    if (device >= blocks[i].device && device < blocks[i].device + blocks[i].bytes) return &blocks[i];
  return NULL;
}

// The host's address of a device address; NULL if no memory lies there.
void *simcuda_host_of(CUdeviceptr device) {
  Block *block = block_at(device);
  return block ? block->host + (device - block->device) : NULL;
}

int holds(CUdeviceptr device, size_t bytes) {
  Block *block = block_at(device);
  return block && device + bytes <= block->device + block->bytes;
}

static void forget(int i) {
  if (blocks[i].kind != REGISTERED) munmap(blocks[i].host, blocks[i].bytes);
  bytes_in_use -= blocks[i].bytes;
  blocks[i] = blocks[--block_count];
}

void forget_all(void) {
  while (block_count) forget(block_count - 1);
}

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
