#include "server/attend_call.h"

#include <grpcpp/impl/codegen/proto_utils.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/read_attend.h"
#include "server/unary_call.h"

namespace triad {
namespace {

// Messages from here on are read where they lie. Below, the copy costs less than looking for the tensors.
constexpr int64_t kLeastInPlace = int64_t{256} << 10;
// In pieces of this size or more on average: what is kept about a piece, some 64 bytes, is little beside it, and most
// rows lie in one.
constexpr int64_t kLeastPiece = 1024;

// Made before, and gone after, the call that refers to them.
struct AttendMessages {
  v1::AttendRequest request;
  v1::AttendResponse response;
};

// A message's slices, for as long as anyone reads them.
class HeldSlices {
 public:
  // `bytes` are held already.
  HeldSlices(std::vector<grpc::Slice> slices, int64_t bytes, HeldBytes& held)
      : slices_(std::move(slices)), bytes_(bytes), held_(held) {}
  ~HeldSlices() { held_.LetGo(bytes_); }
  HeldSlices(const HeldSlices&) = delete;
  HeldSlices& operator=(const HeldSlices&) = delete;

 private:
  const std::vector<grpc::Slice> slices_;
  const int64_t bytes_;
  HeldBytes& held_;
};

class AttendCall final : private AttendMessages, public TaskCall<v1::AttendRequest, v1::AttendResponse> {
 public:
  AttendCall(const RawExchange& raw, ServingContext& context)
      : TaskCall({raw.rpc, AttendMessages::request, AttendMessages::response, Method::kAttend}, context), raw_(raw) {}

  void Read(MakeTask<v1::AttendRequest, v1::AttendResponse> make) {
    auto pieces = std::make_unique<KeyValuePieces>();
    if (absl::Status status = Decode(*pieces); !status.ok()) return Answer(std::move(status));
    if (pieces->key.size() + pieces->value.size() == 0) pieces = nullptr;
    Begin(make, std::move(pieces));
  }

 private:
  absl::Status Decode(KeyValuePieces& pieces) {
    if (absl::Status status = CheckOpen(context_); !status.ok()) return status;
    std::vector<grpc::Slice> slices;
    // Not valid: there was no message, or no memory to receive it.
    if (raw_.request.Valid() && !raw_.request.Dump(&slices).ok()) slices.clear();
    raw_.request.Clear();
    Pieces wire;
    for (const grpc::Slice& slice : slices) {
      wire.Add(reinterpret_cast<const std::byte*>(slice.begin()), static_cast<int64_t>(slice.size()));
    }
    request_bytes_ = wire.size();
    const bool may_stay = request_bytes_ >= std::max(kLeastInPlace, kLeastPiece * static_cast<int64_t>(slices.size()));
    if (!may_stay || !context_.held_bytes.TryHold(request_bytes_)) {
      return ParseAttend(wire, AttendMessages::request) ? absl::OkStatus() : NoMessage();
    }
    pieces.memory = std::make_shared<HeldSlices>(std::move(slices), request_bytes_, context_.held_bytes);
    pieces.held_bytes = request_bytes_;
    return ReadAttend(wire, AttendMessages::request, pieces) ? absl::OkStatus() : NoMessage();
  }

  absl::Status NoMessage() const {
    return absl::InvalidArgumentError(absl::StrCat("the message must be a ", AttendMessages::request.GetTypeName(),
                                                   "; its ", request_bytes_, " bytes are not"));
  }

  int64_t request_bytes() const override { return request_bytes_; }

  absl::Status SerializeResponse() override {
    bool is_ours = false;
    const grpc::Status status =
        grpc::SerializationTraits<v1::AttendResponse>::Serialize(AttendMessages::response, &raw_.response, &is_ours);
    return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  }

  const RawExchange raw_;
  int64_t request_bytes_ = 0;
};

}  // namespace

grpc::ServerUnaryReactor* StartAttendCall(const RawExchange& exchange,
                                          MakeTask<v1::AttendRequest, v1::AttendResponse> make,
                                          ServingContext& context) {
  auto* const call = std::make_unique<AttendCall>(exchange, context).release();
  call->Read(make);
  return call;
}

}  // namespace triad
