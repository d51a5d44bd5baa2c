//@ pass histogram
//@ inputs ids
//@ outputs counts
//@ grid n
//@ threadgroup 100
//@ init 0
//@ atomic_outputs
//@ source
atomic_fetch_add_explicit(&counts[ids[thread_position_in_grid.x]], 1, memory_order_relaxed);
