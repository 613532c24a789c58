// The elements of an XML document in their order, as a test looks for them.
#pragma once

#include <libxml/parser.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace support {

struct XmlElement {
  std::string name, text;  // text: directly in it
  std::map<std::string, std::string> attributes;
  std::vector<size_t> inside;  // places of the elements around it

  std::string operator[](const std::string& key) const {
    const auto found = attributes.find(key);
    return found == attributes.end() ? "" : found->second;
  }
  double number(const std::string& key) const { return std::stod((*this)[key]); }
  // "x,y x,y ..."
  std::vector<std::pair<double, double>> points() const {
    std::vector<std::pair<double, double>> out;
    std::istringstream in((*this)["points"]);
    char comma = 0;
    for (double x = 0, y = 0; in >> x >> comma >> y;) out.emplace_back(x, y);
    return out;
  }
};

class XmlDocument {
 public:
  explicit XmlDocument(const std::string& text) {
    xmlDoc* document = xmlReadMemory(text.data(), static_cast<int>(text.size()), "picture.svg",
                                     nullptr, XML_PARSE_NONET);
    REQUIRE(document != nullptr);
    std::vector<size_t> inside;
    walk(xmlDocGetRootElement(document), inside);
    xmlFreeDoc(document);
  }

  const std::vector<XmlElement>& all() const { return elements_; }
  // Of this name, and with these attributes.
  std::vector<XmlElement> find(const std::string& name,
                               const std::map<std::string, std::string>& attributes = {}) const {
    std::vector<XmlElement> found;
    for (const XmlElement& element : elements_)
      if (is_like(element, name, attributes)) found.push_back(element);
    return found;
  }
  // Those within the only element that is like that.
  std::vector<XmlElement> within(const std::string& name,
                                 const std::map<std::string, std::string>& attributes,
                                 const std::string& inner) const {
    std::vector<size_t> outer;
    for (size_t i = 0; i < elements_.size(); ++i)
      if (is_like(elements_[i], name, attributes)) outer.push_back(i);
    REQUIRE(outer.size() == 1);
    std::vector<XmlElement> found;
    for (const XmlElement& element : elements_) {
      const bool is_inside = std::find(element.inside.begin(), element.inside.end(),
                                       outer.front()) != element.inside.end();
      if (is_inside && element.name == inner) found.push_back(element);
    }
    return found;
  }

 private:
  static bool is_like(const XmlElement& element, const std::string& name,
                      const std::map<std::string, std::string>& attributes) {
    if (element.name != name) return false;
    for (const auto& [key, value] : attributes)
      if (element[key] != value) return false;
    return true;
  }

  static std::string string_of(const xmlChar* text) {
    return text == nullptr ? "" : reinterpret_cast<const char*>(text);
  }

  void walk(xmlNode* node, std::vector<size_t>& inside) {
    for (; node != nullptr; node = node->next) {
      if (node->type != XML_ELEMENT_NODE) continue;
      XmlElement element;
      element.name = string_of(node->name);
      element.inside = inside;
      for (xmlAttr* attribute = node->properties; attribute; attribute = attribute->next) {
        xmlChar* value = xmlNodeGetContent(attribute->children);
        element.attributes[string_of(attribute->name)] = string_of(value);
        xmlFree(value);
      }
      for (xmlNode* child = node->children; child; child = child->next)
        if (child->type == XML_TEXT_NODE) element.text += string_of(child->content);
      elements_.push_back(std::move(element));
      inside.push_back(elements_.size() - 1);
      walk(node->children, inside);
      inside.pop_back();
      if (inside.empty()) return;  // the root has no siblings
    }
  }

  std::vector<XmlElement> elements_;
};

}  // namespace support
