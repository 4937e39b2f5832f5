#include "engine/safetensors.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tensor/arena.hpp"
#include "tests/support/groups.hpp"

namespace stagger {
namespace {

using Bytes = std::vector<std::byte>;
using Metadata = std::map<std::string, std::string>;

ArenaLayout two_tensors(const std::vector<LayerRange>& groups = groups_of(2)) {
  return {
      {{.name = "a", .shape = {2, 3}, .layer = 0}, {.name = "b", .shape = {2}, .layer = 1}},
      groups};
}

Arena counting_arena(const std::vector<LayerRange>& groups = groups_of(2)) {
  Arena arena(two_tensors(groups));
  float next = 1.0F;
  for (std::size_t index = 0; index < 2; ++index) {
    for (float& value : arena.parameter(index)) {
      value = next++;
    }
  }
  return arena;
}

/// A file with this header and so many bytes of data.
Bytes file_of(const std::string& header, std::size_t data) {
  Bytes bytes(8 + header.size() + data);
  const std::uint64_t length = header.size();
  std::memcpy(bytes.data(), &length, 8);
  std::memcpy(bytes.data() + 8, header.data(), header.size());
  return bytes;
}

std::string entry(const std::string& shape, const std::string& offsets) {
  return R"({"dtype":"F32","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

const std::string& good_a() {
  static const std::string text = R"("a":)" + entry("[2,3]", "[0,24]");
  return text;
}

const std::string& good_b() {
  static const std::string text = R"("b":)" + entry("[2]", "[24,32]");
  return text;
}

TEST(Safetensors, come_back_with_values_and_metadata) {
  Arena source = counting_arena();
  source.parameter(0)[1] = std::numeric_limits<float>::quiet_NaN();
  source.parameter(0)[2] = -0.0F;
  const Metadata metadata{{"iteration", "42"}, {"note", "\"quoted\" \\ ü"}};
  const Bytes bytes = encode_safetensors(source, metadata);

  Arena target(two_tensors(groups_of(2, {1})));  // another grouping reads the same file
  const Result<Metadata> read = decode_safetensors(bytes, "file", target);
  ASSERT_TRUE(read) << describe(read.error());
  EXPECT_EQ(*read, metadata);
  for (std::size_t index = 0; index < 2; ++index) {
    const auto expected = std::as_bytes(source.parameter(index));
    const auto found = std::as_bytes(target.parameter(index));
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), found.begin(), found.end()));
  }
}

TEST(Safetensors, have_the_layout_of_the_format) {
  const Bytes bytes = encode_safetensors(counting_arena(groups_of(2, {1})), {});
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  EXPECT_EQ(length % 8, 0U);
  ASSERT_EQ(bytes.size(), 8 + length + 32);
  std::string header(length, ' ');
  std::memcpy(header.data(), bytes.data() + 8, length);
  header.erase(header.find_last_not_of(' ') + 1);
  EXPECT_EQ(header, "{" + good_a() + "," + good_b() + "}");
  std::vector<float> values(8);
  std::memcpy(values.data(), bytes.data() + 8 + length, 32);
  EXPECT_EQ(values, (std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST(Safetensors, are_read_in_whatever_order_the_file_has) {
  const std::string header = R"({"b":)" + entry("[2]", "[0,8]") + R"(,"__metadata__":{},"a":)" +
                             entry("[2,3]", "[8,32]") + "}   ";
  Bytes bytes = file_of(header, 32);
  const float value = 5.0F;
  std::memcpy(bytes.data() + 8 + header.size() + 8, &value, 4);
  Arena target(two_tensors());
  ASSERT_TRUE(decode_safetensors(bytes, "file", target));
  EXPECT_EQ(target.parameter(0)[0], 5.0F);
  EXPECT_EQ(target.parameter(1)[0], 0.0F);
}

struct Hostile {
  Hostile(std::string what, Bytes contents, std::string message)
      : title(std::move(what)), bytes(std::move(contents)), complaint(std::move(message)) {}

  std::string title;
  Bytes bytes;
  std::string complaint;
};

Bytes with_length(std::uint64_t length) {
  Bytes bytes = file_of("{" + good_a() + "," + good_b() + "}", 32);
  std::memcpy(bytes.data(), &length, 8);
  return bytes;
}

/// Both tensors, the second replaced.
Bytes with_b(const std::string& b, std::size_t data = 32) {
  return file_of("{" + good_a() + "," + b + "}", data);
}

std::vector<Hostile> hostile_files() {
  const std::string type = R"("b":{"dtype":"F64","shape":[2],"data_offsets":[24,32]})";
  const std::string no_type = R"("b":{"shape":[2],"data_offsets":[24,32]})";
  const std::string number_type = R"("b":{"dtype":7,"shape":[2],"data_offsets":[24,32]})";
  const std::string double_key =
      R"("b":{"dtype":"F64","dtype":"F32","shape":[2],"data_offsets":[24,32]})";
  return {
      {"nothing", {}, "0 bytes, expected 8"},
      {"half a length", Bytes(7), "7 bytes, expected 8"},
      {"length beyond the file", with_length(1000), "header length 1000, expected at most"},
      {"length that overflows",
       with_length(~std::uint64_t{0}),
       "header length 18446744073709551615"},
      {"length of none", with_length(0), "not a JSON object"},
      {"length that cuts the header", with_length(20), "not a JSON object"},
      {"a list", file_of("[]", 32), "not a JSON object"},
      {"no JSON", file_of("hello", 32), "not a JSON object"},
      {"bad text", file_of("{\"\xff\":1}", 32), "not a JSON object"},
      {"a deep nest", file_of(R"({"a":)" + std::string(100000, '['), 32), "too deep"},
      {"missing tensor", file_of("{" + good_a() + "}", 24), "tensor b is missing"},
      {"extra tensor",
       with_b(good_b() + R"(,"c":)" + entry("[1]", "[32,36]"), 36),
       "tensor c is none of this model's"},
      {"a name twice", with_b(good_b() + "," + good_b()), "name b occurs twice"},
      {"a key twice", with_b(double_key), "name dtype occurs twice"},
      {"wrong type", with_b(type), "tensor b: dtype \"F64\", expected F32"},
      {"no type", with_b(no_type), "tensor b: dtype missing"},
      {"a number as type", with_b(number_type), "tensor b: dtype 7"},
      {"no object", with_b(R"("b":5)"), "tensor b: its entry is not an object"},
      {"wrong shape", with_b(R"("b":)" + entry("[3]", "[24,32]")), "shape [3], expected [2]"},
      {"shape of other rank", with_b(R"("b":)" + entry("[2,1]", "[24,32]")), "shape [2, 1]"},
      {"negative shape", with_b(R"("b":)" + entry("[-2]", "[24,32]")), "missing or malformed"},
      {"fractional shape", with_b(R"("b":)" + entry("[2.0]", "[24,32]")), "missing or malformed"},
      {"text as shape", with_b(R"("b":)" + entry("\"2\"", "[24,32]")), "missing or malformed"},
      {"one offset", with_b(R"("b":)" + entry("[2]", "[24]")), "data_offsets missing or malformed"},
      {"negative offset", with_b(R"("b":)" + entry("[2]", "[-8,0]")), "data_offsets missing"},
      {"offsets the wrong way", with_b(R"("b":)" + entry("[2]", "[32,24]")), "expected 8 bytes"},
      {"offsets too wide", with_b(R"("b":)" + entry("[2]", "[24,36]"), 36), "expected 8 bytes"},
      {"offsets beyond the end",
       with_b(R"("b":)" + entry("[2]", "[32,40]")),
       "expected 8 bytes within 32"},
      {"offsets that overflow",
       with_b(R"("b":)" + entry("[2]", "[18446744073709551612,4]")),
       "expected 8 bytes"},
      {"overlap", with_b(R"("b":)" + entry("[2]", "[20,28]"), 28), "overlap or leave a gap"},
      {"gap", with_b(R"("b":)" + entry("[2]", "[28,36]"), 36), "overlap or leave a gap"},
      {"data behind the last", with_b(good_b(), 40), "40 bytes of data, the tensors have 32"},
      {"metadata that is a number",
       with_b(good_b() + R"(,"__metadata__":1)"),
       "__metadata__ is not an object"},
      {"metadata of numbers",
       with_b(good_b() + R"(,"__metadata__":{"x":1})"),
       "__metadata__ x is not a string"}};
}

TEST(Safetensors, refuse_hostile_files_say_why_and_leave_the_values_alone) {
  const Arena before = counting_arena();
  for (const Hostile& hostile : hostile_files()) {
    SCOPED_TRACE(hostile.title);
    Arena values = counting_arena();
    const Result<Metadata> read = decode_safetensors(hostile.bytes, "some/file", values);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, Errc::storage);
    EXPECT_EQ(read.error().detail.find("some/file: "), 0U) << read.error().detail;
    EXPECT_NE(read.error().detail.find(hostile.complaint), std::string::npos)
        << read.error().detail;
    EXPECT_TRUE(std::equal(before.all().begin(), before.all().end(), values.all().begin()));
  }
}

TEST(Safetensors, survive_every_cut_and_every_changed_byte) {
  const Bytes good = encode_safetensors(counting_arena(), {{"key", "value"}});
  Arena values(two_tensors());
  for (std::size_t size = 0; size < good.size(); ++size) {
    const Bytes part(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_FALSE(decode_safetensors(part, "cut", values)) << size;
  }
  std::size_t refused = 0;
  for (std::size_t at = 0; at < good.size() - 32; ++at) {
    Bytes changed = good;
    changed[at] ^= std::byte{0x15};
    if (!decode_safetensors(changed, "changed", values)) ++refused;
  }
  EXPECT_GT(refused, good.size() / 2);
}

TEST(ParametersSha256, is_the_digest_of_the_values_in_parameter_order) {
  const Arena zero(ArenaLayout({{.name = "a", .shape = {16}, .layer = 0}}, groups_of(1)));
  // sha256sum of 64 zero bytes.
  EXPECT_EQ(
      parameters_sha256(zero), "f5a5fd42d16a20302798ef6ed309979b43003d2320d9f0e8ea9831a92759fb4b");
}

TEST(ParametersSha256, does_not_depend_on_the_groups_but_on_every_bit) {
  Arena values = counting_arena();
  const std::string digest = parameters_sha256(values);
  EXPECT_EQ(parameters_sha256(counting_arena(groups_of(2, {1}))), digest);
  values.parameter(1)[1] = std::nextafter(values.parameter(1)[1], 0.0F);
  EXPECT_NE(parameters_sha256(values), digest);
}

}  // namespace
}  // namespace stagger
