#include "client/tools/progress.h"

#include <chrono>
#include <sstream>
#include <string>

#include "gtest/gtest.h"
#include "tests/support/fake_clock.h"

namespace triad::tools {
namespace {

// Text that a test can wait for.
class WatchedBuffer final : public std::streambuf {
 public:
  std::string WaitFor(const std::string& text) {
    MutexLock lock(mu_);
    while (text_.find(text) == std::string::npos) changed_.Wait(mu_);
    return text_;
  }

 private:
  std::streamsize xsputn(const char* characters, std::streamsize count) override {
    MutexLock lock(mu_);
    text_.append(characters, static_cast<size_t>(count));
    changed_.Signal();
    return count;
  }
  int_type overflow(int_type character) override {
    const char c = traits_type::to_char_type(character);
    return xsputn(&c, 1) == 1 ? character : traits_type::eof();
  }

  Mutex mu_;
  CondVar changed_;
  std::string text_ ABSL_GUARDED_BY(mu_);
};

TEST(ProgressTest, SaysNothingWithinASecond) {
  FakeClock clock;
  std::ostringstream out;
  {
    Progress progress(out, /*enabled=*/true, clock);
    clock.Advance(std::chrono::milliseconds(999));
  }
  EXPECT_EQ(out.str(), "");
}

TEST(ProgressTest, SaysNothingWhenDisabled) {
  FakeClock clock;
  std::ostringstream out;
  {
    Progress progress(out, /*enabled=*/false, clock);
    clock.Advance(std::chrono::seconds(5));
  }
  EXPECT_EQ(out.str(), "");
}

TEST(ProgressTest, CountsSecondsUnderTheStageAndErasesItselfAtTheEnd) {
  FakeClock clock;
  WatchedBuffer buffer;
  std::ostream out(&buffer);
  {
    Progress progress(out, /*enabled=*/true, clock);
    progress.Enter("waiting");
    clock.Advance(std::chrono::seconds(1));
    buffer.WaitFor("waiting: 1 s");
    progress.Enter("writing");
    clock.Advance(std::chrono::seconds(1));
    buffer.WaitFor("writing: 2 s");
  }
  const std::string text = buffer.WaitFor("");
  EXPECT_EQ(text.substr(text.size() - 4), "\r\x1b[K");
}

TEST(ProgressTest, AStageThatChangesIsAskedForEachLine) {
  FakeClock clock;
  WatchedBuffer buffer;
  std::ostream out(&buffer);
  int asked = 0;
  {
    Progress progress(out, /*enabled=*/true, clock);
    progress.Enter([&asked] { return "line " + std::to_string(++asked); });
    clock.Advance(std::chrono::seconds(1));
    buffer.WaitFor("line 1: 1 s");
    clock.Advance(std::chrono::seconds(1));
    buffer.WaitFor("line 2: 2 s");
  }
  EXPECT_EQ(asked, 2);
}

}  // namespace
}  // namespace triad::tools
