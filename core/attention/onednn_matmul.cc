#include "core/attention/onednn_matmul.h"

#include <dnnl.hpp>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

// Of libgomp, the OpenMP that Debian's oneDNN runs on whatever compiles us; Clang's own omp.h would bring a second
// runtime.
extern "C" void omp_set_num_threads(int threads);

namespace triad {
namespace {

absl::Status FromDnnl(const dnnl::error& error) { return absl::InternalError(absl::StrCat("oneDNN: ", error.what())); }

dnnl::engine& Engine() {
  static dnnl::engine engine(dnnl::engine::kind::cpu, /*index=*/0);
  return engine;
}

// A stream is cheap to keep and dear to make, and not documented as thread-safe: one per thread.
dnnl::stream& ThreadStream() {
  thread_local dnnl::stream stream = [] {
    omp_set_num_threads(1);  // per calling thread; otherwise execute() starts a team of its own in every worker
    return dnnl::stream(Engine());
  }();
  return stream;
}

dnnl::matmul::primitive_desc Describe(const dnnl::memory::desc& a, const dnnl::memory::desc& b,
                                      const dnnl::memory::desc& c) {
  ThreadStream();  // oneDNN cuts a product for as many threads as the describing one may use: one
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);  // what makes a primitive shareable between threads
#if DNNL_VERSION_MAJOR >= 3
  return dnnl::matmul::primitive_desc(Engine(), a, b, c, attr);
#else
  return dnnl::matmul::primitive_desc(dnnl::matmul::desc(a, b, c), attr, Engine());
#endif
}

absl::Status CheckSizes(const MatmulShape& shape) {
  if (shape.m >= 1 && shape.k >= 1 && shape.n >= 1) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("a tile's sizes must be positive; were ", shape.m, " x ", shape.k, " x ", shape.n));
}

dnnl::memory::data_type OperandType(const MatmulShape& shape) {
  return shape.bf16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

dnnl::memory::desc DescribeA(const MatmulShape& shape) {
  return {{shape.m, shape.k}, OperandType(shape), dnnl::memory::dims{shape.a_stride, 1}};
}

dnnl::memory::desc DescribeC(const MatmulShape& shape) {
  return {{shape.m, shape.n}, dnnl::memory::data_type::f32, dnnl::memory::dims{shape.c_stride, 1}};
}

}  // namespace

struct WeightLayout::Impl {
  dnnl::memory::desc rows;
  dnnl::memory::desc packed;
};

WeightLayout::WeightLayout(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
WeightLayout::~WeightLayout() = default;

absl::StatusOr<std::shared_ptr<const WeightLayout>> WeightLayout::Create(const MatmulShape& shape) {
  if (absl::Status status = CheckSizes(shape); !status.ok()) return status;
  using dnnl::memory;
  try {
    auto impl = std::make_unique<Impl>();
    const memory::dims dims{shape.k, shape.n};
    impl->rows = memory::desc(dims, OperandType(shape), memory::dims{1, shape.k});
    const memory::desc any(dims, OperandType(shape), memory::format_tag::any);
    impl->packed = Describe(DescribeA(shape), any, DescribeC(shape)).weights_desc();
    return std::shared_ptr<const WeightLayout>(new WeightLayout(std::move(impl)));
  } catch (const dnnl::error& error) {
    return FromDnnl(error);
  }
}

int64_t WeightLayout::byte_size() const { return static_cast<int64_t>(impl_->packed.get_size()); }

absl::Status WeightLayout::Pack(const void* rows, std::byte* packed) const {
  try {
    dnnl::stream& stream = ThreadStream();
    dnnl::memory from(impl_->rows, Engine(), const_cast<void*>(rows));
    dnnl::memory to(impl_->packed, Engine(), packed);
    dnnl::reorder(from, to).execute(stream, from, to);
    stream.wait();
    return absl::OkStatus();
  } catch (const dnnl::error& error) {
    return FromDnnl(error);
  }
}

struct TileMatmul::Impl {
  dnnl::memory::desc a;
  dnnl::memory::desc b;
  dnnl::memory::desc c;
  dnnl::memory::desc scratchpad;
  dnnl::matmul primitive;
};

TileMatmul::TileMatmul(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TileMatmul::~TileMatmul() = default;

absl::StatusOr<std::shared_ptr<const TileMatmul>> TileMatmul::Create(const MatmulShape& shape,
                                                                     const WeightLayout* weights) {
  if (absl::Status status = CheckSizes(shape); !status.ok()) return status;
  using dnnl::memory;
  try {
    auto impl = std::make_unique<Impl>();
    impl->a = DescribeA(shape);
    const memory::dims b_strides =
        shape.b_transposed ? memory::dims{1, shape.b_stride} : memory::dims{shape.b_stride, 1};
    impl->b =
        weights != nullptr ? weights->impl_->packed : memory::desc({shape.k, shape.n}, OperandType(shape), b_strides);
    impl->c = DescribeC(shape);
    const dnnl::matmul::primitive_desc description = Describe(impl->a, impl->b, impl->c);
    impl->scratchpad = description.scratchpad_desc();
    impl->primitive = dnnl::matmul(description);
    return std::shared_ptr<const TileMatmul>(new TileMatmul(std::move(impl)));
  } catch (const dnnl::error& error) {
    return FromDnnl(error);
  }
}

int64_t TileMatmul::scratchpad_bytes() const { return static_cast<int64_t>(impl_->scratchpad.get_size()); }

struct MatmulCall::Impl {
  std::shared_ptr<const TileMatmul> matmul;
  dnnl::memory a;
  dnnl::memory b;
  dnnl::memory c;
  dnnl::memory scratchpad;
};

MatmulCall::MatmulCall() = default;
MatmulCall::MatmulCall(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
MatmulCall::MatmulCall(MatmulCall&&) noexcept = default;
MatmulCall& MatmulCall::operator=(MatmulCall&&) noexcept = default;
MatmulCall::~MatmulCall() = default;

absl::StatusOr<MatmulCall> MatmulCall::Create(std::shared_ptr<const TileMatmul> matmul, std::byte* scratchpad) {
  try {
    const TileMatmul::Impl& compiled = *matmul->impl_;
    auto impl = std::make_unique<Impl>();
    impl->a = dnnl::memory(compiled.a, Engine(), nullptr);
    impl->b = dnnl::memory(compiled.b, Engine(), nullptr);
    impl->c = dnnl::memory(compiled.c, Engine(), nullptr);
    impl->scratchpad = dnnl::memory(compiled.scratchpad, Engine(), scratchpad);
    impl->matmul = std::move(matmul);
    return MatmulCall(std::move(impl));
  } catch (const dnnl::error& error) {
    return FromDnnl(error);
  }
}

absl::Status MatmulCall::Run(const void* a, const void* b, float* c) {
  try {
    impl_->a.set_data_handle(const_cast<void*>(a));
    impl_->b.set_data_handle(const_cast<void*>(b));
    impl_->c.set_data_handle(c);
    // The C entry point takes a plain array; the C++ one builds a hash map on each call (0.5 us beside tiles of 30 us).
    const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_SRC, impl_->a.get()},
                                         {DNNL_ARG_WEIGHTS, impl_->b.get()},
                                         {DNNL_ARG_DST, impl_->c.get()},
                                         {DNNL_ARG_SCRATCHPAD, impl_->scratchpad.get()}};
    const dnnl_status_t status = dnnl_primitive_execute(impl_->matmul->impl_->primitive.get(), ThreadStream().get(),
                                                        /*nargs=*/4, arguments);
    if (status != dnnl_success) return absl::InternalError(absl::StrCat("oneDNN: matmul failed with status ", status));
    return absl::OkStatus();
  } catch (const dnnl::error& error) {
    return FromDnnl(error);
  }
}

absl::StatusOr<std::shared_ptr<const TileMatmul>> MatmulCache::Get(const MatmulShape& shape) {
  {
    MutexLock lock(mu_);
    if (auto found = products_.find(shape); found != products_.end()) return found->second;
  }
  absl::StatusOr<std::shared_ptr<const TileMatmul>> product = TileMatmul::Create(shape);
  if (!product.ok()) return product;
  MutexLock lock(mu_);
  const auto [held, is_new] = products_.emplace(shape, *std::move(product));
  std::shared_ptr<const TileMatmul> first = held->second;  // another thread may have been faster
  if (products_.size() > kMaxShapes) products_.erase(held == products_.begin() ? std::next(held) : products_.begin());
  return first;
}

std::string OneDnnVersion() {
  const dnnl_version_t& version = *dnnl_version();
  return absl::StrCat(version.major, ".", version.minor, ".", version.patch);
}

absl::Status CheckOneDnn() {
  try {
    Engine();
    return absl::OkStatus();
  } catch (const dnnl::error& error) {
    return FromDnnl(error);
  }
}

void CapOneDnn(InstructionSet isa) {
  dnnl::cpu_isa cap = dnnl::cpu_isa::avx512_core_bf16;
  if (isa == InstructionSet::kAvx512) cap = dnnl::cpu_isa::avx512_core;
  if (isa == InstructionSet::kAvx2) cap = dnnl::cpu_isa::avx2;
  if (isa == InstructionSet::kGeneric) cap = dnnl::cpu_isa::sse41;
  // Fails when oneDNN has decided already, which the header allows for.
  static_cast<void>(dnnl::set_max_cpu_isa(cap));
}

}  // namespace triad
