#include "runtime/safetensors_writer.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <fstream>
#include <stdexcept>
#include <utility>

#include "kernels/base/verify.hpp"

namespace runtime {

void SafeTensorsWriter::add(std::string name, std::string dtype, std::vector<uint64_t> shape,
                            Fill fill) {
  uint64_t bytes = 0;
  if (dtype == "U8") bytes = 1;
  if (dtype == "BF16" || dtype == "U16") bytes = 2;
  if (dtype == "F32") bytes = 4;
  if (dtype == "I64") bytes = 8;
  VERIFY(bytes > 0);
  for (const uint64_t extent : shape) bytes *= extent;
  entries_.push_back({std::move(name), std::move(dtype), std::move(shape), bytes, std::move(fill)});
}

void SafeTensorsWriter::write(const std::string& path) const {
  boost::json::object header;
  header["__metadata__"] = {{"format", "pt"}};
  uint64_t offset = 0;
  for (const Entry& entry : entries_) {
    boost::json::object fields;
    fields["dtype"] = entry.dtype;
    fields["shape"] = boost::json::array(entry.shape.begin(), entry.shape.end());
    fields["data_offsets"] = {offset, offset + entry.bytes};
    header[entry.name] = std::move(fields);
    offset += entry.bytes;
  }
  std::string text = boost::json::serialize(header);
  text.append((8 - text.size() % 8) % 8, ' ');  // the data starts on a multiple of 8

  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  for (int i = 0; i < 8; ++i) out.put(static_cast<char>((text.size() >> (8 * i)) & 0xff));
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  std::vector<std::byte> data;
  for (const Entry& entry : entries_) {
    data.resize(entry.bytes);
    entry.fill(data);
    out.write(reinterpret_cast<const char*>(data.data()),
              static_cast<std::streamsize>(data.size()));
  }
  out.close();
  if (!out) throw std::runtime_error(path + ": cannot be written");
}

}  // namespace runtime
