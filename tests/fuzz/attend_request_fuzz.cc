// Whatever the bytes of an AttendRequest, they are no message, or are refused in words, or give a problem that the fast
// kernel and the reference can compute. And whatever pieces they come in, ReadAttend reads what the generated parser
// reads.
#include <cstdint>
#include <memory>
#include <string>

#include "core/attention/fast_attention.h"
#include "core/attention/reference_attention.h"
#include "core/attention/validate_attention.h"
#include "core/base/check.h"
#include "server/decode_request.h"
#include "tests/fuzz/request_answer.h"
#include "tests/support/wire_pieces.h"

namespace triad {
namespace {

void Compute(const AttentionProblem& problem) {
  static const auto fast = FastAttention::Create(DetectInstructionSet());
  TRIAD_CHECK(fast.ok(), "this machine has a fast kernel");
  static const ReferenceAttention reference;
  for (const AttentionKernel* kernel :
       {static_cast<const AttentionKernel*>(fast->get()), static_cast<const AttentionKernel*>(&reference)}) {
    RequestAnswer answer(problem, problem.output_shape);
    Scratch scratch;
    TRIAD_CHECK(RunAll(*kernel, problem, answer.outputs(), scratch).ok(), "a valid problem can be computed");
  }
}

void Check(const v1::AttendRequest& message) {
  const absl::StatusOr<DecodedAttend> decoded = DecodeAttend(message, kFuzzLimits.max_batch);
  if (!decoded.ok()) return CheckRefusal(decoded.status());
  const absl::StatusOr<AttentionProblem> problem = ValidateAttention(decoded->request, kFuzzLimits);
  if (!problem.ok()) return CheckRefusal(problem.status());
  if (IsSmall(*problem, FlopNeeded(*problem))) Compute(*problem);
}

}  // namespace
}  // namespace triad

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string wire(reinterpret_cast<const char*>(data), size);
  for (size_t piece_bytes : {size_t{1}, size_t{13}, size + 1}) {
    TRIAD_CHECK(triad::ReadsAsParsed(wire, piece_bytes), "what is read in pieces is the generated parser's message");
  }
  triad::v1::AttendRequest message;
  if (message.ParseFromArray(data, static_cast<int>(size))) triad::Check(message);
  return 0;
}
