#include "runtime/train/html_text.hpp"

#include <libxml/HTMLparser.h>
#include <libxml/tree.h>

#include <algorithm>
#include <array>
#include <memory>

#include "runtime/train/text_flow.hpp"

namespace runtime {

namespace {

struct FreeDocument {
  void operator()(xmlDoc* document) const { xmlFreeDoc(document); }
};

std::string_view view(const xmlChar* text) {
  return text == nullptr ? std::string_view() : reinterpret_cast<const char*>(text);
}

template <size_t N>
bool is_one_of(std::string_view word, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

constexpr std::array<std::string_view, 15> kUnread{
    "head",   "script", "style", "svg",    "nav",    "form",   "button",  "noscript",
    "select", "img",    "audio", "iframe", "object", "canvas", "template"};
constexpr std::array<std::string_view, 25> kBlocks{
    "p",     "div",   "table",   "ul",      "ol",      "dl",         "dt",     "dd", "h1",
    "h2",    "h3",    "h4",      "h5",      "h6",      "blockquote", "center", "hr", "section",
    "thead", "tbody", "caption", "article", "address", "header",     "main"};
// Navigation and tables of contents, as DocBook and SQLite's pages mark them.
constexpr std::array<std::string_view, 6> kNavigation{"navheader", "navfooter",  "nosearch",
                                                      "toc",       "searchmenu", "mobileonly"};

std::string attribute(const xmlNode* node, const char* name) {
  xmlChar* value = xmlGetProp(node, reinterpret_cast<const xmlChar*>(name));
  const std::string out(view(value));
  xmlFree(value);
  return out;
}

bool is_navigation(const xmlNode* node) {
  const std::string classes = attribute(node, "class");
  std::string_view rest = classes;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(' '), rest.size());
    if (is_one_of(rest.substr(0, end), kNavigation)) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

std::string content(const xmlNode* node) {
  xmlChar* text = xmlNodeGetContent(node);
  std::string out(view(text));
  xmlFree(text);
  return out;
}

void read_children(const xmlNode* node, TextFlow& out);

void read_row(const xmlNode* row, TextFlow& out) {
  out.line_break();
  bool is_first = true;
  for (const xmlNode* cell = row->children; cell != nullptr; cell = cell->next) {
    if (cell->type != XML_ELEMENT_NODE) continue;
    if (!is_first) out.cell();
    read_children(cell, out);
    is_first = false;
  }
  out.prefix("");  // of an empty last cell
  out.line_break();
}

void read_node(const xmlNode* node, TextFlow& out) {
  if (node->type == XML_TEXT_NODE || node->type == XML_CDATA_SECTION_NODE) {
    out.words(view(node->content));
    return;
  }
  if (node->type == XML_ENTITY_REF_NODE) return out.words(content(node));
  if (node->type != XML_ELEMENT_NODE) return;
  const std::string_view name = view(node->name);
  if (is_one_of(name, kUnread) || is_navigation(node)) return;
  if (name == "pre") return out.preformatted(content(node));
  if (name == "tr") return read_row(node, out);
  if (name == "br") return out.line_break();
  if (name == "li") {
    out.line_break();
    out.prefix("- ");
    read_children(node, out);
    out.prefix("");
    out.line_break();
    return;
  }
  const bool is_block = is_one_of(name, kBlocks);
  if (is_block) out.paragraph();
  read_children(node, out);
  if (is_block) out.paragraph();
}

void read_children(const xmlNode* node, TextFlow& out) {
  for (const xmlNode* child = node->children; child != nullptr; child = child->next)
    read_node(child, out);
}

const xmlNode* find_element(const xmlNode* node, std::string_view name) {
  for (; node != nullptr; node = node->next) {
    if (node->type != XML_ELEMENT_NODE) continue;
    if (view(node->name) == name) return node;
    if (const xmlNode* found = find_element(node->children, name)) return found;
  }
  return nullptr;
}

}  // namespace

std::string html_to_text(std::string_view html) {
  const std::unique_ptr<xmlDoc, FreeDocument> document(
      htmlReadMemory(html.data(), static_cast<int>(html.size()), nullptr, "UTF-8",
                     HTML_PARSE_RECOVER | HTML_PARSE_NOERROR | HTML_PARSE_NOWARNING |
                         HTML_PARSE_NONET | HTML_PARSE_COMPACT));
  if (document == nullptr) return {};
  const xmlNode* root = xmlDocGetRootElement(document.get());
  TextFlow title_flow, flow;
  if (const xmlNode* title = find_element(root, "title")) title_flow.words(content(title));
  if (const xmlNode* body = find_element(root, "body")) read_children(body, flow);
  const std::string title = title_flow.take(), text = flow.take();
  // Most pages show their title as the first heading.
  return title.empty() || text.starts_with(title) ? text : title + "\n" + text;
}

}  // namespace runtime
