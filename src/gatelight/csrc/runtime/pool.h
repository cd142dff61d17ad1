// A pool of threads that sleep between jobs and take items of a job one by one.
#pragma once

#include <cstdint>
#include <functional>

namespace gatelight {

// Number of threads a job may use, the caller's included.
void set_threads(int threads);
int get_threads();
void stop_threads();

// Calls work(item, slot) for each item below `items`, slot < threads naming the thread. Items are taken from a counter,
// so a thread that the system delays leaves its share to the others. Serial while another job is running.
void parallel(int64_t items, int threads, const std::function<void(int64_t item, int slot)>& work);

// The same on get_threads() threads.
void parallel(int64_t items, const std::function<void(int64_t item, int slot)>& work);

}  // namespace gatelight
