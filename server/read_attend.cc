// Takes the message apart and puts it together again without the tensors' data, which may be most of it: fields are
// copied as they are, but for `data`, of which the place is kept. What remains is small, and the generated parser reads
// it. So there is no second opinion on what a message means; and where the sizes show that some tag or length was not
// written in the one shortest form, a tensor comes twice, or much remains, the generated parser reads all of it.
#include "server/read_attend.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>

#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace triad {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;
using google::protobuf::io::StringOutputStream;

class WireStream {
 public:
  explicit WireStream(const Pieces& wire) {
    wire.ForEach(0, wire.size(), [&](const std::byte* data, int64_t size) {
      arrays_.emplace_back(data, static_cast<int>(size));
      streams_.push_back(&arrays_.back());
    });
    all_.emplace(streams_.data(), static_cast<int>(streams_.size()));
  }

  google::protobuf::io::ZeroCopyInputStream* get() { return &*all_; }

 private:
  std::deque<google::protobuf::io::ArrayInputStream> arrays_;  // which stay where they are
  std::vector<google::protobuf::io::ZeroCopyInputStream*> streams_;
  std::optional<google::protobuf::io::ConcatenatingInputStream> all_;
};

// Most bytes of a message beside its tensors' data. Lengths, slopes and sinks are less; more is no request that pays
// for being taken apart.
constexpr int kMostRest = 1 << 20;

// Where a tensor's data lies in the message.
struct DataPlace {
  int64_t begin = 0;
  int64_t count = 0;
};

class Splitter {
 public:
  explicit Splitter(const Pieces& wire) : wire_(wire), stream_(wire), in_(stream_.get()) {}

  // False: it was not written as protobuf writes it.
  bool Split() {
    {
      StringOutputStream string(&rest_);
      CodedOutputStream rest(&string);
      while (const uint32_t tag = in_.ReadTag()) {
        if (!(IsTensor(tag) ? CopyTensor(tag, rest) : CopyField(tag, rest))) return false;
      }
    }
    return in_.ConsumedEntireMessage() && static_cast<int64_t>(rest_.size()) + left_out_ == wire_.size();
  }

  // The message without its tensors' data.
  const std::string& rest() const { return rest_; }
  Pieces DataOf(int field) const {
    const auto place = data_.find(field);
    return place == data_.end() ? Pieces() : wire_.Sub(place->second.begin, place->second.count);
  }

 private:
  static bool IsTensor(uint32_t tag) {
    if (WireFormatLite::GetTagWireType(tag) != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) return false;
    switch (WireFormatLite::GetTagFieldNumber(tag)) {
      case v1::AttendRequest::kQueryFieldNumber:
      case v1::AttendRequest::kKeyFieldNumber:
      case v1::AttendRequest::kValueFieldNumber:
      case v1::AttendRequest::kKeepFieldNumber:
      case v1::AttendRequest::kBiasFieldNumber:
        return true;
      default:
        return false;
    }
  }

  bool CopyField(uint32_t tag, CodedOutputStream& rest) {
    const CodedInputStream::Limit outer = in_.PushLimit(kMostRest);
    if (!WireFormatLite::SkipField(&in_, tag, &rest) || rest.ByteCount() > kMostRest) return false;
    in_.PopLimit(outer);
    return true;
  }

  bool CopyTensor(uint32_t tag, CodedOutputStream& rest) {
    int bytes = 0;
    if (!in_.ReadVarintSizeAsInt(&bytes)) return false;
    const auto [place, is_first] = data_.try_emplace(WireFormatLite::GetTagFieldNumber(tag));
    if (!is_first) return false;
    const CodedInputStream::Limit outer = in_.PushLimit(bytes);
    std::string fields;
    if (!CopyTensorFields(fields, place->second) || in_.BytesUntilLimit() != 0) return false;
    in_.PopLimit(outer);
    const auto fields_bytes = static_cast<uint32_t>(fields.size());
    rest.WriteTag(tag);
    rest.WriteVarint32(fields_bytes);
    rest.WriteString(fields);
    left_out_ += static_cast<int64_t>(CodedOutputStream::VarintSize32(static_cast<uint32_t>(bytes))) -
                 static_cast<int64_t>(CodedOutputStream::VarintSize32(fields_bytes));
    return true;
  }

  // Up to the limit.
  bool CopyTensorFields(std::string& fields, DataPlace& data) {
    constexpr uint32_t kDataTag =
        GOOGLE_PROTOBUF_WIRE_FORMAT_MAKE_TAG(v1::Tensor::kDataFieldNumber, WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
    StringOutputStream string(&fields);
    CodedOutputStream rest(&string);
    bool has_data = false;
    while (const uint32_t tag = in_.ReadTag()) {
      if (tag != kDataTag) {
        if (!CopyField(tag, rest)) return false;
        continue;
      }
      int bytes = 0;
      if (std::exchange(has_data, true) || !in_.ReadVarintSizeAsInt(&bytes)) return false;
      data = {.begin = in_.CurrentPosition(), .count = bytes};
      if (!in_.Skip(bytes)) return false;
      left_out_ += static_cast<int64_t>(CodedOutputStream::VarintSize32(tag) +
                                        CodedOutputStream::VarintSize32(static_cast<uint32_t>(bytes))) +
                   data.count;
    }
    return true;
  }

  const Pieces& wire_;
  WireStream stream_;
  CodedInputStream in_;
  std::string rest_;
  std::map<int, DataPlace> data_;  // by the tensor's field
  int64_t left_out_ = 0;           // bytes of the message that are not in rest_
};

void Append(const Pieces& bytes, std::string& to) {
  to.reserve(static_cast<size_t>(bytes.size()));
  bytes.ForEach(0, bytes.size(), [&](const std::byte* data, int64_t size) {
    to.append(reinterpret_cast<const char*>(data), static_cast<size_t>(size));
  });
}

bool IsTooLong(const Pieces& wire) { return wire.size() > std::numeric_limits<int>::max(); }  // for protobuf

}  // namespace

bool ReadAttend(const Pieces& wire, v1::AttendRequest& message, KeyValuePieces& pieces) {
  if (IsTooLong(wire)) return false;
  Splitter splitter(wire);
  if (!splitter.Split()) return ParseAttend(wire, message);
  if (!message.ParseFromString(splitter.rest())) return false;
  pieces.key = splitter.DataOf(v1::AttendRequest::kKeyFieldNumber);
  pieces.value = splitter.DataOf(v1::AttendRequest::kValueFieldNumber);
  const auto fill = [&](int field, v1::Tensor* (v1::AttendRequest::*tensor)()) {
    const Pieces data = splitter.DataOf(field);
    if (data.size() > 0) Append(data, *(message.*tensor)()->mutable_data());
  };
  fill(v1::AttendRequest::kQueryFieldNumber, &v1::AttendRequest::mutable_query);
  fill(v1::AttendRequest::kKeepFieldNumber, &v1::AttendRequest::mutable_keep);
  fill(v1::AttendRequest::kBiasFieldNumber, &v1::AttendRequest::mutable_bias);
  return true;
}

bool ParseAttend(const Pieces& wire, v1::AttendRequest& message) {
  return !IsTooLong(wire) && message.ParseFromZeroCopyStream(WireStream(wire).get());
}

}  // namespace triad
