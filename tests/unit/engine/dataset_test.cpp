#include "engine/dataset.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "net/sim/storage.hpp"
#include "tests/support/training.hpp"

namespace stagger {
namespace {

using Bytes = std::vector<std::byte>;

Bytes bytes_of(std::initializer_list<unsigned> values) {
  Bytes bytes;
  for (const unsigned value : values) {
    bytes.push_back(static_cast<std::byte>(value));
  }
  return bytes;
}

/// An IDX file of bytes that count up from 0.
Bytes idx(const std::vector<std::uint32_t>& dimensions) {
  Bytes bytes = bytes_of({0, 0, 8, static_cast<unsigned>(dimensions.size())});
  std::size_t count = 1;
  for (const std::uint32_t extent : dimensions) {
    for (const unsigned shift : {24U, 16U, 8U, 0U}) {
      bytes.push_back(static_cast<std::byte>(extent >> shift));
    }
    count *= extent;
  }
  for (std::size_t i = 0; i < count; ++i) {
    bytes.push_back(static_cast<std::byte>(i));
  }
  return bytes;
}

Bytes cut(Bytes bytes, std::size_t size) {
  bytes.resize(size);
  return bytes;
}

Bytes with(Bytes bytes, std::size_t at, unsigned value) {
  bytes.at(at) = static_cast<std::byte>(value);
  return bytes;
}

Bytes followed_by(Bytes bytes, const Bytes& more) {
  bytes.insert(bytes.end(), more.begin(), more.end());
  return bytes;
}

TEST(DecodeIdx, reads_plain_and_gzip_files_alike) {
  const Bytes plain = idx({2, 3, 4});
  for (const Bytes& bytes : {plain, gzip(plain)}) {
    const Result<IdxArray> array = decode_idx(bytes, "file");
    ASSERT_TRUE(array) << describe(array.error());
    EXPECT_EQ(array->dimensions, (std::vector<std::size_t>{2, 3, 4}));
    ASSERT_EQ(array->values.size(), 24U);
    EXPECT_EQ(array->values[0], 0);
    EXPECT_EQ(array->values[23], 23);
  }
}

/// A file that must be refused, and what the message must say beside the file's name.
struct Hostile {
  Hostile(std::string what, Bytes contents, std::string message)
      : title(std::move(what)), bytes(std::move(contents)), complaint(std::move(message)) {}

  std::string title;
  Bytes bytes;
  std::string complaint;
};

std::vector<Hostile> hostile_files() {
  const Bytes good = idx({2, 3});
  const Bytes packed = gzip(good);
  Bytes damaged = gzip(idx({100, 50}));
  damaged[damaged.size() / 2] ^= std::byte{0x55};
  Bytes wrong_checksum = packed;
  wrong_checksum[packed.size() - 8] ^= std::byte{1};
  const Bytes huge_and_empty =
      bytes_of({0, 0, 8, 2, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF});
  const Bytes overflow =
      followed_by(bytes_of({0, 0, 8, 4}), Bytes(16, std::byte{0x80}));  // four times 0x80808080
  return {
      {"nothing", {}, "truncated: magic of 4 bytes at byte 0, ends at byte 0"},
      {"half a magic", cut(good, 3), "ends at byte 3"},
      {"magic of floats", with(good, 2, 0x0D), "magic at byte 0 is 00 00 0d 02"},
      {"magic of text", bytes_of({'P', 'K', 3, 4, 0, 0}), "50 4b 03 04"},
      {"rank of none", with(good, 3, 0), "rank of 1 to 4"},
      {"rank of many", with(good, 3, 9), "rank of 1 to 4"},
      {"no dimensions", cut(good, 4), "dimension of 4 bytes at byte 4, ends at byte 4"},
      {"half a dimension", cut(good, 10), "dimension of 4 bytes at byte 8, ends at byte 10"},
      {"dimension of none", with(good, 7, 0), "dimension 0 at byte 4 is 0"},
      {"missing values", cut(good, 15), "dimensions 2 x 3 at byte 4 promise more"},
      {"values that follow", followed_by(good, bytes_of({1, 2})), "2 bytes after the values"},
      {"huge dimensions", huge_and_empty, "promise more"},
      {"product that overflows", overflow, "promise more"},
      {"huge dimensions in gzip", gzip(huge_and_empty), "promise more"},
      {"gzip magic alone", bytes_of({0x1F, 0x8B}), "compressed data ends early"},
      {"half a gzip", cut(packed, packed.size() / 2), "compressed data ends early"},
      {"gzip without its checksum", cut(packed, packed.size() - 8), "compressed data ends early"},
      {"gzip with a wrong checksum", wrong_checksum, "damaged gzip data"},
      {"damaged gzip", damaged, "g"},
      {"gzip of too few values",
       gzip(cut(good, 15)),
       "values of 6 bytes at byte 12, ends at byte 15"},
      {"gzip of too many values", gzip(followed_by(good, bytes_of({1}))), "inflates to more"},
      {"gzip with something behind",
       followed_by(packed, bytes_of({1, 2, 3})),
       "3 bytes after the gzip"},
      {"gzip within gzip", gzip(packed), "magic at byte 0 is 1f 8b"}};
}

TEST(DecodeIdx, refuses_hostile_files_and_says_why) {
  for (const Hostile& hostile : hostile_files()) {
    SCOPED_TRACE(hostile.title);
    const Result<IdxArray> array = decode_idx(hostile.bytes, "some/file");
    ASSERT_FALSE(array);
    EXPECT_EQ(array.error().code, Errc::storage);
    EXPECT_EQ(array.error().detail.find("some/file: "), 0U) << array.error().detail;
    EXPECT_NE(array.error().detail.find(hostile.complaint), std::string::npos)
        << array.error().detail;
  }
}

TEST(DecodeIdx, refuses_or_reads_every_cut_and_every_changed_byte_without_harm) {
  for (const Bytes& good : {idx({3, 4, 5}), gzip(idx({3, 4, 5}))}) {
    for (std::size_t size = 0; size < good.size(); ++size) {
      EXPECT_FALSE(decode_idx(cut(good, size), "cut")) << size;
    }
    for (std::size_t at = 0; at < good.size(); ++at) {
      const Result<IdxArray> array =
          decode_idx(with(good, at, std::to_integer<unsigned>(good[at]) ^ 0x81U), "changed");
      EXPECT_TRUE(!array || array->values.size() == 60) << at;
    }
  }
}

class IdxPair : public testing::Test {
 protected:
  void put(const std::string& path, const Bytes& bytes) {
    ASSERT_TRUE(storage_.write_atomic(path, bytes));
  }

  std::string complaint(std::size_t classes) const {
    const Result<Dataset> dataset = read_idx(storage_, "images", "labels", classes);
    return dataset ? "" : dataset.error().detail;
  }

  SimStorage storage_;
};

TEST_F(IdxPair, becomes_a_dataset_of_one_channel) {
  put("images", idx({4, 3, 2}));
  put("labels", gzip(idx({4})));
  const Result<Dataset> dataset = read_idx(storage_, "images", "labels", 4);
  ASSERT_TRUE(dataset) << describe(dataset.error());
  EXPECT_EQ(dataset->shape, (std::vector<std::size_t>{1, 3, 2}));
  EXPECT_EQ(dataset->size(), 4U);
  EXPECT_EQ(dataset->sample_size(), 6U);
  EXPECT_EQ(dataset->classes, 4U);
  EXPECT_EQ(dataset->labels, (std::vector<std::uint8_t>{0, 1, 2, 3}));
  EXPECT_EQ(dataset->pixels.back(), 23);
}

TEST_F(IdxPair, becomes_a_dataset_of_several_channels) {
  put("images", idx({2, 3, 4, 5}));
  put("labels", idx({2}));
  const Result<Dataset> dataset = read_idx(storage_, "images", "labels", 10);
  ASSERT_TRUE(dataset) << describe(dataset.error());
  EXPECT_EQ(dataset->shape, (std::vector<std::size_t>{3, 4, 5}));
}

TEST_F(IdxPair, is_refused_where_its_files_do_not_belong_together) {
  put("images", idx({4, 3, 2}));
  put("labels", idx({3}));
  EXPECT_EQ(complaint(10), "labels: 3 labels, expected 4 as images in images");
  put("labels", idx({4}));
  EXPECT_EQ(complaint(3), "labels: label 3 at byte 11, expected less than 3 classes");
  put("labels", idx({4, 1}));
  EXPECT_EQ(complaint(10), "labels: rank 2, expected 1 for labels");
  put("images", idx({4, 3}));
  put("labels", idx({4}));
  EXPECT_EQ(complaint(10), "images: rank 2, expected 3 or 4 for images");
}

TEST_F(IdxPair, names_the_file_that_is_missing) {
  put("images", idx({4, 3, 2}));
  const Result<Dataset> dataset = read_idx(storage_, "images", "labels", 10);
  ASSERT_FALSE(dataset);
  EXPECT_EQ(dataset.error().code, Errc::not_found);
  EXPECT_NE(dataset.error().detail.find("labels"), std::string::npos);
}

TEST(Gather, normalises_and_orders_as_asked) {
  Dataset dataset;
  dataset.shape = {1, 1, 2};
  dataset.classes = 3;
  dataset.pixels = {0, 255, 51, 102, 153, 204};
  dataset.labels = {2, 0, 1};
  dataset.mean = 0.5F;
  dataset.deviation = 0.25F;
  Batch batch;
  gather(dataset, std::vector<std::uint32_t>{2, 0}, batch);
  EXPECT_EQ(batch.size, 2U);
  EXPECT_EQ(batch.labels, (std::vector<std::int32_t>{1, 2}));
  ASSERT_EQ(batch.inputs.size(), 4U);
  const std::vector<float> expected{0.4F, 1.2F, -2.0F, 2.0F};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(batch.inputs[i], expected[i], 1e-6F);
  }
}

TEST(Gather, reuses_the_batchs_memory) {
  Dataset dataset;
  dataset.shape = {1, 1, 1};
  dataset.pixels = {1, 2, 3};
  dataset.labels = {0, 1, 2};
  Batch batch;
  gather(dataset, std::vector<std::uint32_t>{0, 1, 2}, batch);
  const float* const before = batch.inputs.data();
  gather(dataset, std::vector<std::uint32_t>{1}, batch);
  EXPECT_EQ(batch.size, 1U);
  gather(dataset, std::vector<std::uint32_t>{2, 1, 0}, batch);
  EXPECT_EQ(batch.inputs.data(), before);
}

TEST(GatherDeathTest, refuses_samples_beyond_the_end) {
  Dataset dataset;
  dataset.shape = {1, 1, 1};
  dataset.pixels = {1};
  dataset.labels = {0};
  Batch batch;
  EXPECT_DEATH(gather(dataset, std::vector<std::uint32_t>{1}, batch), "CHECK failed");
}

}  // namespace
}  // namespace stagger
