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

// Messages from here on are read where they lie. At 1 MiB that saves 4 % of the server's time (DECISIONS.md), so there
// is little to gain far below it.
constexpr int64_t kLeastInPlace = int64_t{256} << 10;
// In pieces of this size or more on average: what is kept about a piece, some 64 bytes, is little beside it, and most
// rows lie in one.
constexpr int64_t kLeastPiece = 1024;

// Made before, and gone after, the call that refers to them.
struct AttendMessages {
  v1::AttendRequest request;
  v1::AttendResponse response;
};

// A message in gRPC's memory, for as long as anyone reads it.
class ReceivedMessage {
 public:
  // Takes it from `bytes`.
  explicit ReceivedMessage(grpc::ByteBuffer& bytes) {
    bytes_.Swap(&bytes);
    if (!bytes_.Valid() || !bytes_.Dump(&slices_).ok()) return;
    is_whole_ = true;
    for (const grpc::Slice& slice : slices_) {
      wire_.Add(reinterpret_cast<const std::byte*>(slice.begin()), static_cast<int64_t>(slice.size()));
    }
  }
  ~ReceivedMessage() {
    if (held_ != nullptr) held_->LetGo(wire_.size());
  }
  ReceivedMessage(const ReceivedMessage&) = delete;
  ReceivedMessage& operator=(const ReceivedMessage&) = delete;

  // False: none came, or its end did not.
  bool is_whole() const { return is_whole_; }
  const Pieces& wire() const { return wire_; }
  int64_t slices() const { return static_cast<int64_t>(slices_.size()); }

  // Once. True: it counts among `held` as long as it is here.
  bool TryHold(HeldBytes& held) {
    if (!held.TryHold(wire_.size())) return false;
    held_ = &held;
    return true;
  }

 private:
  // Destroyed after the slices, so that it is what gives their memory back. A slice must not, except within gRPC: when
  // the quota is used up, that wakes what waits for memory, which crashes elsewhere (gRPC 1.51).
  grpc::ByteBuffer bytes_;
  std::vector<grpc::Slice> slices_;
  Pieces wire_;
  bool is_whole_ = false;
  HeldBytes* held_ = nullptr;
};

class AttendCall final : private AttendMessages, public TaskCall<v1::AttendRequest, v1::AttendResponse> {
 public:
  AttendCall(const RawExchange& raw, ServingContext& context)
      : TaskCall({raw.rpc, AttendMessages::request, AttendMessages::response, Method::kAttend}, context), raw_(raw) {}

  // `received` is whole.
  void Read(std::shared_ptr<ReceivedMessage> received, MakeTask<v1::AttendRequest, v1::AttendResponse> make) {
    auto pieces = std::make_unique<KeyValuePieces>();
    if (absl::Status status = Decode(std::move(received), *pieces); !status.ok()) return Answer(std::move(status));
    if (pieces->key.size() + pieces->value.size() == 0) pieces = nullptr;
    Begin(make, std::move(pieces));
  }

 private:
  absl::Status Decode(std::shared_ptr<ReceivedMessage> received, KeyValuePieces& pieces) {
    if (absl::Status status = CheckOpen(context_); !status.ok()) return status;
    request_bytes_ = received->wire().size();
    const bool may_stay = request_bytes_ >= std::max(kLeastInPlace, kLeastPiece * received->slices());
    if (!may_stay || !received->TryHold(context_.held_bytes)) {
      return ParseAttend(received->wire(), AttendMessages::request) ? absl::OkStatus() : NoMessage();
    }
    const Pieces& wire = received->wire();
    pieces.memory = std::move(received);
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
  auto received = std::make_shared<ReceivedMessage>(exchange.request);
  if (!received->is_whole()) {
    // Its caller went away while it came, or has half-closed without it: no request, and counted as none.
    grpc::ServerUnaryReactor* const reactor = exchange.rpc.DefaultReactor();
    reactor->Finish({grpc::StatusCode::INVALID_ARGUMENT, "the message must be an AttendRequest; none came whole"});
    return reactor;
  }
  auto* const call = std::make_unique<AttendCall>(exchange, context).release();
  call->Read(std::move(received), make);
  return call;
}

}  // namespace triad
