#include <cuda_runtime.h>

// The texture unit interpolates, and clamps at the border.
__global__ void resize_bilinear(cudaTextureObject_t image, float* out, int out_height, int out_width, float scale_y,
                                float scale_x) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= out_width || y >= out_height) return;
  out[y * out_width + x] = tex2D<float>(image, (x + 0.5f) * scale_x, (y + 0.5f) * scale_y);
}

void resize(const float* h_image, float* d_out, int height, int width, int out_height, int out_width) {
  cudaArray_t array;
  cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaMallocArray(&array, &format, width, height);
  cudaMemcpy2DToArray(array, 0, 0, h_image, width * sizeof(float), width * sizeof(float), height,
                      cudaMemcpyHostToDevice);

  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaTextureDesc description = {};
  description.addressMode[0] = cudaAddressModeClamp;
  description.addressMode[1] = cudaAddressModeClamp;
  description.filterMode = cudaFilterModeLinear;
  description.readMode = cudaReadModeElementType;
  cudaTextureObject_t image = 0;
  cudaCreateTextureObject(&image, &resource, &description, nullptr);

  dim3 block(16, 16);
  dim3 grid((out_width + 15) / 16, (out_height + 15) / 16);
  resize_bilinear<<<grid, block>>>(image, d_out, out_height, out_width, (float)height / out_height,
                                   (float)width / out_width);
  cudaDestroyTextureObject(image);
  cudaFreeArray(array);
}
