//@ buffer key_cache_new [batch * kv_heads * head_dim * max_len] float16
//@ buffer key_cache_written [batch * kv_heads * head_dim * max_len] bool
//@ buffer value_cache_new [batch * kv_heads * head_dim * max_len] float16
//@ buffer value_cache_written [batch * kv_heads * head_dim * max_len] bool
//@ pass kv_cache_append_kernel
//@ inputs key, value, cache_position
//@ outputs key_cache_new, value_cache_new, key_cache_written, value_cache_written
//@ grid batch * 128; 1; 1
//@ threadgroup 128; 1; 1
//@ template kv_heads = kv_heads; head_dim = head_dim; max_len = max_len
//@ init 0
//@ source
// The new token of each sequence goes to that sequence's next place; the rest of the cache stays as it is.
const int b = threadgroup_position_in_grid.x;
const int position = cache_position[b];
if (position < 0 || position >= max_len) return;

for (int i = thread_position_in_threadgroup.x; i < kv_heads * head_dim; i += threads_per_threadgroup.x) {
  const int head = i / head_dim;
  const int d = i % head_dim;
  const size_t to = (((size_t)b * kv_heads + head) * max_len + position) * head_dim + d;
  const size_t from = (size_t)b * kv_heads * head_dim + i;
  key_cache_new[to] = key[from], key_cache_written[to] = true;
  value_cache_new[to] = value[from], value_cache_written[to] = true;
}
//@ pass key_cache_out_combined
//@ inputs key_cache, key_cache_new, key_cache_written
//@ outputs key_cache_out
//@ grid batch * kv_heads * head_dim * max_len; 1; 1
//@ threadgroup min(batch * kv_heads * head_dim * max_len, 256); 1; 1
//@ source
// Elements that the kernel has not written stay as they were.
uint i = thread_position_in_grid.x;
key_cache_out[i] = key_cache_written[i] ? key_cache_new[i] : key_cache[i];
//@ pass value_cache_out_combined
//@ inputs value_cache, value_cache_new, value_cache_written
//@ outputs value_cache_out
//@ grid batch * kv_heads * head_dim * max_len; 1; 1
//@ threadgroup min(batch * kv_heads * head_dim * max_len, 256); 1; 1
//@ source
// Elements that the kernel has not written stay as they were.
uint i = thread_position_in_grid.x;
value_cache_out[i] = value_cache_written[i] ? value_cache_new[i] : value_cache[i];
