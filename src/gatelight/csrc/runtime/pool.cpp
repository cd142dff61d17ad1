#include "runtime/pool.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#if !defined(_WIN32)
#include <pthread.h>
#endif

namespace gatelight {
namespace {

// Some twenty microseconds.
constexpr int LOOK_OUT = 1000;

class Pool {
 public:
  void run(int64_t items, int threads, const std::function<void(int64_t, int)>& work) {
    {
      std::lock_guard<std::mutex> hold(lock_);
      grow(static_cast<int>(std::min<int64_t>(threads, items)) - 1);
      work_ = &work;
      items_ = items;
      next_ = 0;
      joined_ = 0;
      welcome_ = static_cast<int>(std::min<int64_t>(threads, items)) - 1;
      jobs_++;
    }
    wake_.notify_all();
    take(0);
    // Every item is taken. Threads that have not joined by now are not waited for.
    std::unique_lock<std::mutex> hold(lock_);
    welcome_ = 0;
    idle_.wait(hold, [&] { return working_ == 0; });
    work_ = nullptr;
  }

  void stop() {
    {
      std::lock_guard<std::mutex> hold(lock_);
      stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread& t : threads_) t.join();
    threads_.clear();
    stopping_ = false;
  }

  std::mutex running;  // held by the caller whose job it is

 private:
  void grow(int threads) {
    try {
      while (static_cast<int>(threads_.size()) < threads) threads_.emplace_back([this] { serve(); });
    } catch (const std::system_error&) {
      // The system gives no more threads: the job runs on those there are.
    }
  }

  void take(int slot) {
    for (int64_t i; (i = next_.fetch_add(1, std::memory_order_relaxed)) < items_;) (*work_)(i, slot);
  }

  // A pass is several jobs in a row, and waking a thread takes longer than the pause between them: look for the
  // next job for a moment before going to sleep.
  void look_out(uint64_t known) {
    for (int i = 0; i < LOOK_OUT && jobs_.load(std::memory_order_relaxed) == known; i++) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
  }

  void serve() {
    std::unique_lock<std::mutex> hold(lock_);
    for (;;) {
      if (!stopping_ && welcome_ == 0) {
        const uint64_t known = jobs_;
        hold.unlock();
        look_out(known);
        hold.lock();
      }
      wake_.wait(hold, [&] { return stopping_ || welcome_ > 0; });
      if (stopping_) return;
      welcome_--;
      working_++;
      const int slot = ++joined_;
      hold.unlock();
      take(slot);
      hold.lock();
      if (--working_ == 0) idle_.notify_one();
    }
  }

  std::mutex lock_;
  std::condition_variable wake_, idle_;
  std::vector<std::thread> threads_;
  const std::function<void(int64_t, int)>* work_ = nullptr;
  std::atomic<int64_t> next_{0};
  std::atomic<uint64_t> jobs_{0};  // how many there have been
  int64_t items_ = 0;
  int welcome_ = 0;  // how many more threads may join the job
  int working_ = 0;
  int joined_ = 0;
  bool stopping_ = false;
};

// Never destroyed: the threads sleep in it until the process ends. A child of fork has none of the parent's threads
// and leaves their pool behind.
std::atomic<Pool*> pool{new Pool};
std::atomic<int> wanted{1};

#if !defined(_WIN32)
const int registered = pthread_atfork(nullptr, nullptr, [] { pool = new Pool; });
#endif

}  // namespace

void set_threads(int threads) { wanted = std::max(1, threads); }

int get_threads() { return wanted; }

void stop_threads() {
  Pool* p = pool;
  std::lock_guard<std::mutex> hold(p->running);
  p->stop();
}

void parallel(int64_t items, const std::function<void(int64_t, int)>& work) { parallel(items, wanted, work); }

void parallel(int64_t items, int threads, const std::function<void(int64_t, int)>& work) {
  Pool* p = pool;
  std::unique_lock<std::mutex> mine(p->running, std::defer_lock);
  if (items > 1 && threads > 1 && mine.try_lock()) return p->run(items, threads, work);
  for (int64_t i = 0; i < items; i++) work(i, 0);
}

}  // namespace gatelight
